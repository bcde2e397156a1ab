"""Folders in place of /proc and /sys."""

from __future__ import annotations

import os


def put(root, files):
    """Write files, by path."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
    return root


def stat(parent, own=0, children=0, name="a (strange) name", pid=1):
    """/proc/<pid>/stat as proc(5) has it: the 2nd field in parentheses, 4th the parent, 14th to 17th CPU times."""
    return f"{pid} ({name}) R {parent} 0 0 0 -1 0 0 0 0 0 {own} 0 {children} 0 20 0 1 0 0"


def cpu_time(user=0, idle=0, waiting=0, steal=0, guest=0):
    """/proc/stat."""
    return f"cpu  {user} 0 0 {idle} {waiting} 0 0 {steal} {guest} 0\ncpu0 1 0 0 1 0 0 0 0 0 0"


def initial_namespace(root):
    (root / "proc/self/ns").mkdir(parents=True, exist_ok=True)
    os.symlink("pid:[4026531836]", root / "proc/self/ns/pid")
