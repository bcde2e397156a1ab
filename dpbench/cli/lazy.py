"""Commands that are imported when they are called: who shows results does not wait for torch."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "run": "run:run",
    "list": "list:list_",
    "show": "show:show",
    "table": "table:table",
    "export": "export:export",
    "report": "report:report",
    "reproduce": "reproduce:reproduce",
    "compare": "compare:compare",
    "ab": "ab:ab",
    "gate": "gate:gate",
    "history": "history:history",
    "init": "init:init",
    "verify": "verify:verify",
    "predict": "predict:predict",
    "layers": "layers:layers",
    "maxbatch": "maxbatch:maxbatch",
    "advise": "advise:advise",
    "calibrate": "calibrate:calibrate",
    "system": "system:system",
}
"""By name, in the order of the help: the module here and its function."""


class Commands(MutableMapping[str, Any]):
    """Commands by name."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, _, function = COMMANDS[name].partition(":")
            app = typer.Typer(add_completion=False)
            app.command(name)(getattr(import_module(f"dpbench.cli.{module}"), function))
            self._made[name] = typer.main.get_command(app)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Group(TyperGroup):
    """The command ``dpbench``."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.commands = Commands()
