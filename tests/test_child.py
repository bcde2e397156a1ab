"""A child's line as it is heard; the other end is a socket of the test."""

from __future__ import annotations

import socket

import pytest

from dpbench import child
from dpbench.child import Process
from dpbench.outcome import Ending
from dpbench.told import Garbled


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Process(1 << 30, ours, lambda timeout: Ending(7)), theirs


def test_messages_come_one_by_one_however_they_are_cut(pair):
    process, theirs = pair
    for part in (b'{"a"', b': 1}\n{"b": 2}\n{"c"', b": 3}\n"):
        theirs.send(part)
    assert [process.receive(1) for _ in range(3)] == [{"a": 1}, {"b": 2}, {"c": 3}]


@pytest.mark.parametrize(
    "line", [b"hello", b"", b"\xff\x80", b"[1]", b"7", b"[" * 200_000, b"1" * 10_000, b'{"a": "\\ud800"}']
)
def test_a_line_that_is_no_message_is_said_to_be_none(pair, line):
    process, theirs = pair
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    theirs.sendall(line + b"\n")
    with pytest.raises(Garbled, match="no JSON|no message"):
        process.receive(1)


def test_a_line_without_end_is_not_kept(pair, monkeypatch):
    process, theirs = pair
    monkeypatch.setattr(child, "LONGEST", 1000)
    theirs.sendall(b"x" * 2000)
    with pytest.raises(Garbled, match="more than 1000 bytes"):
        process.receive(1)


def test_the_end_of_the_messages_is_the_end_of_the_process(pair):
    process, theirs = pair
    theirs.send(b'{"half')
    theirs.close()
    assert process.receive(1) is None
    assert process.wait() == Ending(7)


def test_who_closes_its_line_and_lives_on_takes_too_long():
    def ending(timeout):
        if timeout is None:
            return Ending(-9)
        raise TimeoutError

    ours, theirs = socket.socketpair()
    process = Process(1 << 30, ours, ending)
    theirs.close()
    with pytest.raises(TimeoutError):
        process.receive(0.01)
    assert process.wait() == Ending(-9)
