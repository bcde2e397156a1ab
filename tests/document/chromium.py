"""A real browser, driven through the DevTools protocol over two pipes: no network, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOUND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

PATIENCE = 60
"""Seconds: far more than anything here takes, so that a browser that hangs is a failure."""

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
)
ONTO_3_AND_4 = """
import os, sys
read, write = int(sys.argv[1]), int(sys.argv[2])
os.dup2(os.dup(read), 103); os.dup2(os.dup(write), 104); os.dup2(103, 3); os.dup2(104, 4)
os.closerange(5, 200)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from descriptor 3 and writes to 4."""


class Chromium:
    """One page in a browser of its own, with a profile that is thrown away."""

    def __init__(self) -> None:
        assert FOUND
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self._to = os.pipe()
        self._from, theirs_to = os.pipe()
        command = [FOUND, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", ONTO_3_AND_4, str(theirs), str(theirs_to), *command],
            pass_fds=(theirs, theirs_to),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(theirs_to)
        self._rest, self._number, self._session = b"", 0, ""
        self.complaints: list[str] = []
        """What the page said on its console as an error or a warning, and exceptions of its scripts."""
        self.requests: list[str] = []
        """Every address that was asked for."""
        (target,) = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = ""
            self.call("Browser.close")
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self._to)
            os.close(self._from)
            self.profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return dict(answer["result"])

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file and wait until it is loaded."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + fragment)
        deadline = time.monotonic() + PATIENCE
        ready = "document.readyState === 'complete' && location.protocol === 'file:'"
        while not self.evaluate(ready):
            assert time.monotonic() < deadline, f"the page was not loaded in {PATIENCE} seconds"
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, of a promise what it comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def drawn(self) -> None:
        """Wait until what was asked for is seen."""
        self.evaluate("new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)))")

    def size(self, width: int, height: int, scale: float = 1) -> None:
        """A window of so many CSS pixels."""
        given = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **given)

    def prefers(self, scheme: str, media: str = "") -> None:
        """``light`` or ``dark``, and ``print`` for how it would be printed."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def key(self, name: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if name == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **text)

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """What is seen as PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], PATIENCE)
            assert ready, f"the browser has said nothing for {PATIENCE} seconds"
            some = os.read(self._from, 1 << 16)
            assert some, "the browser has gone"
            self._rest += some
        line, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(line)
        self._note(said.get("method"), said.get("params", {}))
        return said

    def _note(self, method: str | None, said: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        if method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
            self.complaints.append(str(said["args"]))
        if method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(said["entry"]["text"])
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
