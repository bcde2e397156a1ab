"""The source as it was at a git reference, in a directory of its own for as long as it is needed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dpbench.errors import DpbenchError


@contextmanager
def worktree(reference: str, where: Path | None = None) -> Iterator[Path]:
    """Check ``reference`` out beside the checkout that holds ``where``; gives the same folder in it.

    Raises:
        DpbenchError: no git, no checkout, or no such reference.
    """
    here = (where or Path.cwd()).resolve()
    root = top(here)
    commit = _git(here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}", of=reference)
    with tempfile.TemporaryDirectory(prefix="dpbench-") as temporary:
        place = Path(temporary) / "base"
        _git(root, "worktree", "add", "--quiet", "--detach", str(place), commit)
        try:
            if (place / ".gitmodules").is_file():
                with suppress(DpbenchError):
                    # What cannot be fetched breaks where it is needed, and is said there.
                    _git(place, "submodule", "update", "--init", "--recursive", "--quiet")
            yield place / here.relative_to(root)
        finally:
            _git(root, "worktree", "remove", "--force", str(place))


def top(where: Path) -> Path:
    """The root of the checkout that holds ``where``."""
    return Path(_git(where, "rev-parse", "--show-toplevel"))


def on_its_own(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what git tells its hooks: in one, another checkout's files would go into the index of the commit."""
    return {name: value for name, value in environment.items() if not name.startswith("GIT_")}


def _git(where: Path, *words: str, of: str = "") -> str:
    try:
        command = ["git", "-C", str(where), *words]
        environment = on_its_own(os.environ)
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()
    except FileNotFoundError:
        raise DpbenchError("git is not installed, which --base REF needs; give a results file as --base") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()[-1:] or ["no such reference"]
        hint = (
            f"{of} is neither a results file nor a git reference here (in CI, fetch it: fetch-depth: 0)"
            if of
            else f"git {words[0]} in {where}: {said[0]}"
        )
        raise DpbenchError(hint) from None
