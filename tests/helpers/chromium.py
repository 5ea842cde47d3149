"""Headless Chromium, driven through chromedriver by the WebDriver protocol: nothing to install beside the two programs."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for path in map(shutil.which, NAMES) if path), "")
DRIVER = next((path for path in map(shutil.which, ("chromedriver", "chromium.chromedriver")) if path), "")
MISSING = "" if BROWSER and DRIVER else f"no {'chromium' if not BROWSER else 'chromedriver'} is installed here"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


class Chromium:
    """One window."""

    def __init__(self, width: int = 1360, height: int = 900, flags: tuple[str, ...] = ()):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.driver.stdout is not None
        port = next(m[1] for line in self.driver.stdout if (m := re.search(r"started successfully on port (\d+)", line)))
        self.base = f"http://127.0.0.1:{port}/session"
        args = [*FLAGS, *flags, f"--window-size={width},{height}", f"--user-data-dir={self.profile.name}"]
        wanted = {"goog:chromeOptions": {"binary": BROWSER, "args": args}, "goog:loggingPrefs": {"browser": "ALL"}}
        self.base += "/" + self.ask("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            self.profile.cleanup()

    def ask(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if verb in ("GET", "DELETE") else json.dumps(body or {}).encode()
        try:
            with urlopen(Request(self.base + path, data, {"Content-Type": "application/json"}, method=verb), timeout=120) as reply:
                return json.load(reply)["value"]
        except HTTPError as e:
            raise AssertionError(json.load(e)["value"]["message"]) from None

    def open(self, page: Path, tab: str = "") -> float:
        """Load a report; returns the seconds until it said that it is ready."""
        begun = time.perf_counter()
        self.ask("POST", "/url", {"url": "about:blank"})
        self.ask("POST", "/url", {"url": page.as_uri() + tab})
        self.wait("document.documentElement.dataset.ready === 'yes'")
        return time.perf_counter() - begun

    def run(self, script: str, *args: Any) -> Any:
        """The value of an expression."""
        return self.ask("POST", "/execute/sync", {"script": f"return ({script})", "args": list(args)})

    def wait(self, script: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"not within {seconds} s: {script}"
            time.sleep(0.02)

    def keys(self, text: str, of: str = "body") -> None:
        """Press keys; \\ue015 is the arrow down."""
        node = next(iter(self.ask("POST", "/element", {"using": "css selector", "value": of}).values()))
        self.ask("POST", f"/element/{node}/value", {"text": text})

    def hover(self, of: str) -> None:
        element = self.ask("POST", "/element", {"using": "css selector", "value": of})
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": element}
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [move]}
        self.ask("POST", "/actions", {"actions": [mouse]})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """What the console said of errors and of the page's policy."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]
