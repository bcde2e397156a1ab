"""The source of a function with everything that it uses from its module, as text that stands alone."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

KIT = "dpbench.cases"
"""Modules whose source is copied; others are imported."""


def standalone(function: Callable[..., Any]) -> tuple[set[str], str]:
    """Import statements, and every definition that ``function`` needs, in the order in which they were written."""
    taken: dict[tuple[str, str], str] = {}
    imports: set[str] = set()
    _collect(function.__module__, function.__name__, taken, imports)
    order = sorted({module for module, _ in taken}, key=lambda module: module == function.__module__)
    return imports, "\n\n\n".join(_in_order(module, taken) for module in order)


def _collect(module: str, name: str, taken: dict[tuple[str, str], str], imports: set[str]) -> None:
    if (module, name) in taken:
        return
    text = inspect.getsource(sys.modules[module])
    defined, imported = _top(ast.parse(text))
    node = defined.get(name)
    if node is None:
        if name not in imported:
            return
        origin, original = imported[name]
        if origin.startswith(KIT) and original:
            _collect(origin, original, taken, imports)
        else:
            imports.add(_import(origin, original, name))
        return
    taken[module, name] = ""
    for used in _names(node):
        _collect(module, used, taken, imports)
    taken[module, name] = _text(node, text)


def _in_order(module: str, taken: dict[tuple[str, str], str]) -> str:
    defined, _ = _top(ast.parse(inspect.getsource(sys.modules[module])))
    return "\n\n\n".join(taken[module, name] for name in defined if (module, name) in taken)


def _top(tree: ast.Module) -> tuple[dict[str, ast.stmt], dict[str, tuple[str, str]]]:
    """What a module defines at its top, and what it imports, as (module, name there)."""
    defined: dict[str, ast.stmt] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update({t.id: node for t in targets if isinstance(t, ast.Name)})
        elif isinstance(node, ast.ImportFrom):
            imported.update({a.asname or a.name: (node.module or "", a.name) for a in node.names})
        elif isinstance(node, ast.Import):
            imported.update({a.asname or a.name.partition(".")[0]: (a.name, "") for a in node.names})
    return defined, imported


def _names(node: ast.stmt) -> Iterator[str]:
    """What a definition speaks of, its decorators by the kit left out."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id != "case":
            yield child.id


def _text(node: ast.stmt, text: str) -> str:
    lines = text.splitlines()
    first = node.lineno
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        kept = [d for d in node.decorator_list if not _is_case(d)]
        first = min([node.lineno, *(d.lineno for d in kept)])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _is_case(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(function, ast.Name) and function.id == "case"


def _import(origin: str, original: str, name: str) -> str:
    if not original:
        return f"import {origin}" + (f" as {name}" if name != origin.partition(".")[0] else "")
    return f"from {origin} import {original}" + (f" as {name}" if name != original else "")
