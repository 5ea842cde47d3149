"""A headless Chromium, confined, driven over two pipes by the DevTools protocol. One page after the other is shown in it.

Pages are hostile. The browser has no network, no files and no rights (`sandbox/confined.py`), and Chromium's own sandbox for its
parts works within that; its flags refuse popups and background work, and here dialogs are dismissed and downloads denied. Nothing
is run in a page to look at it: what is laid out is read by a snapshot, which no script can change. A page that hangs, floods or
crashes is at fault (`PageFault`), and the browser is started anew.

Time in a page is virtual: it stands still until it is let pass, at once, so that timers cost nothing; and clock and chance are the
same whenever a page is shown.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from functools import cache
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.child import readable
from rewardlab.sandbox.confined import Confined

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = [f"/usr/{x}" for x in ("lib/chromium/chromium", "lib/chromium-browser/chromium-browser", "lib64/chromium/chromium")]
"""Of browsers whose name on the path is a script."""
FONTS = ("/etc/fonts", "/usr/share/fonts", "/usr/local/share/fonts")
WIDTH, HEIGHT = 800, 1000
FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--user-data-dir=/tmp/profile", f"--window-size={WIDTH},{HEIGHT}",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--block-new-web-contents", "--deny-permission-prompts",
    "--disable-background-networking", "--disable-breakpad", "--disable-client-side-phishing-detection",
    "--disable-component-update", "--disable-default-apps", "--disable-dev-shm-usage", "--disable-domain-reliability",
    "--disable-extensions", "--disable-file-system", "--disable-gpu", "--disable-notifications", "--disable-sync",
    "--disable-webgl", "--disable-frame-rate-limit", "--disable-gpu-vsync", "--disable-features=Translate,MediaRouter",
    "--hide-scrollbars", "--mute-audio", "--no-default-browser-check", "--no-first-run", "--renderer-process-limit=2",
    "--js-flags=--max-old-space-size=256 --random-seed=1", "about:blank",
)  # fmt: skip
LIMITS = {"DATA": 2 << 30, "FSIZE": 64 << 20, "NOFILE": 4096, "NPROC": 1024, "folder": 256 << 20}
"""Bytes of data of each process, of a file, and of all files; open files of a process; processes and threads in all."""
LARGEST = 100_000
"""Characters of a page."""
MOST = 24 << 20
"""Bytes that the browser may say of one page."""
STARTING = 30.0
STARVED = 10_000
"""Tasks after which virtual time goes on, where a page makes ever new ones."""
GOING = ("Page.frameRequestedNavigation", "Page.frameStartedNavigating")
PAGES = ("http:", "https:", "about:", "blob:", "file:")
"""What a page can go to; a link to mail leaves it where it is."""
EPOCH = 1_700_000_000
STEADY = (
    "{const n=Date.now.bind(Date),s=n(),p=performance.now.bind(performance),q=p(),D=Date,r=Math.random,now=()=>EPOCH+n()-s;"
    "Date=new Proxy(D,{construct:(t,a,u)=>Reflect.construct(t,a.length?a:[now()],u),apply:()=>new D(now()).toString()});"
    "D.now=now;performance.now=()=>p()-q;name='';"
    "crypto.getRandomValues=a=>{const b=new Uint8Array(a.buffer,a.byteOffset,a.byteLength);"
    "b.forEach((_,i)=>b[i]=r()*256);return a}}"
).replace("EPOCH", str(1000 * EPOCH))
"""Run before a page, so that an honest one is the same each time. A page can find chance elsewhere: this is no wall."""
STYLES = (
    "color", "background-color", "opacity", "visibility", "font-size", "font-weight", "background-image", "border-top-color",
    "text-decoration-line", "transform", "overflow-x",
)  # fmt: skip


class PageFault(Exception):
    """What a page did, in words, by which nothing more can be learnt of it."""


class Late(PageFault):
    """It took too long."""


class Ended(Exception):
    """The browser is gone."""


@cache
def program() -> str:
    """The browser's program; "" where there is none."""
    found = [Path(path).resolve() for path in map(shutil.which, NAMES) if path]
    for path in (*found, *(path.parent / "chrome" for path in found), *map(Path, PLACES)):
        if path.is_file():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    return str(path)
    return ""


def missing() -> str:
    """What is not installed here, and how to install it; "" if nothing is."""
    if not program():
        return "pages are shown in Chromium, which is not installed: apt install chromium fonts-dejavu-core"
    return ""


class Browser:
    """seconds: that a page may take, whatever is done with it. Raises RewardlabError where it cannot be started and isolated."""

    def __init__(self, seconds: float = 10.0):
        if lacks := missing():
            raise RewardlabError(lacks)
        self.seconds = seconds
        path = program()
        self.confined = Confined([path, *FLAGS], [str(Path(path).parent), *FONTS], LIMITS)
        self.rest, self.calls, self.said = b"", 0, 0
        self.session, self.target, self.document, self.there = "", "", "", ""
        self.due = time.monotonic() + STARTING
        self.forget()
        try:
            self._attach()
        except (PageFault, Ended) as problem:
            self.end()
            raise RewardlabError(f"Chromium was started, and then {problem}") from None

    def forget(self) -> None:
        """Of the page before: errors of its scripts, and where it went."""
        self.errors: list[str] = []
        self.left, self.passed, self.blank = "", False, False

    def end(self) -> None:
        self.confined.end()

    def show(self, page: str) -> None:
        """Show a page as if it had just been opened. Raises PageFault."""
        self.due, self.said = time.monotonic() + self.seconds, 0
        if not self.blank:
            self.leave()
        self.forget()
        self.blank = False
        self.call("Emulation.setVirtualTimePolicy", policy="pause")
        self.call("Page.setDocumentContent", frameId=self.target, html=page)

    def leave(self) -> None:
        """Show nothing. What a page does when it is left is its own fault, and not the next one's."""
        self.document = self.call("Page.navigate", url="about:blank")["loaderId"]
        # the answer comes before the page is gone
        while self.there != self.document:
            self._note(self._message())
        self.blank = True

    def let_pass(self, milliseconds: int) -> None:
        """Let virtual time go on: timers fire."""
        self.passed = False
        self.call(
            "Emulation.setVirtualTimePolicy", policy="advance", budget=milliseconds, maxVirtualTimeTaskStarvationCount=STARVED
        )
        while not self.passed:
            self._note(self._message())

    def layout(self) -> dict[str, Any]:
        """All that is laid out, as `DOMSnapshot.captureSnapshot` gives it."""
        return self.call(
            "DOMSnapshot.captureSnapshot", computedStyles=list(STYLES), includePaintOrder=True, includeTextColorOpacities=True
        )

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def click(self, x: float, y: float) -> None:
        """Press the left button and let go of it, and take the mouse away."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        # not waited for: a mere move is told with the next frame, which may not come before time goes on
        self._send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": WIDTH - 1, "y": HEIGHT - 1})

    def write(self, text: str) -> None:
        """Type a text where the caret is, and the Enter key."""
        self.call("Input.insertText", text=text)
        for kind in ("rawKeyDown", "char", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers. Raises PageFault where it does not in time, or the page has crashed."""
        number = self._send(method, parameters)
        while True:
            message = self._message()
            if message.get("id") == number:
                if "error" in message:
                    raise PageFault(f"cannot be read: {message['error'].get('message', '')[:100]}")
                return message["result"]
            self._note(message)

    def _attach(self) -> None:
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.target = pages[0]["targetId"]
        self.call("Browser.setDownloadBehavior", behavior="deny")
        self.session = self.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "DOMSnapshot", "Inspector"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.call("Page.addScriptToEvaluateOnNewDocument", source=STEADY)
        self.call("Emulation.setVirtualTimePolicy", policy="pause", initialVirtualTime=EPOCH)

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self.calls += 1
        message: dict[str, Any] = {"id": self.calls, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        unsent = memoryview(json.dumps(message).encode() + b"\0")
        while unsent:
            try:
                unsent = unsent[os.write(self.confined.into, unsent) :]
            except BlockingIOError:
                # the pipe is full, as a browser that is busy reads nothing
                if time.monotonic() > self.due:
                    raise Late(f"took over {self.seconds:g} s") from None
                time.sleep(0.001)
            except OSError:
                raise Ended("it ended") from None
        return self.calls

    def _message(self) -> dict[str, Any]:
        while (end := self.rest.find(b"\0")) < 0:
            if not readable(self.confined.out, self.due):
                raise Late(f"took over {self.seconds:g} s")
            chunk = os.read(self.confined.out, 1 << 20)
            self.said += len(chunk)
            if not chunk:
                raise Ended("it ended")
            if self.said > MOST:
                raise PageFault(f"floods: more than {MOST >> 20} MB are to be said of it")
            self.rest += chunk
        line, self.rest = self.rest[:end], self.rest[end + 1 :]
        if time.monotonic() > self.due:
            raise Late(f"took over {self.seconds:g} s")
        return json.loads(line)

    def _note(self, message: dict[str, Any]) -> None:
        name, said = message.get("method", ""), message.get("params", {})
        if name == "Runtime.exceptionThrown" and len(self.errors) < 10:
            self.errors.append(_first_line(said["exceptionDetails"]))
        elif name == "Page.javascriptDialogOpening":
            # a page that asks to be left only with consent is left
            self._send("Page.handleJavaScriptDialog", {"accept": said.get("type") == "beforeunload"})
        elif name == "Page.frameNavigated":
            frame = said["frame"]
            if frame["id"] == self.target:
                self.there = frame["loaderId"]
            if frame["id"] == self.target and self.there != self.document:
                self.left = frame.get("unreachableUrl") or frame["url"]
        elif name in GOING and said["frameId"] == self.target and said.get("disposition", "currentTab") == "currentTab":
            # where it asks to go is told at once; that it went is told in real time, and virtual time does not wait for it
            if said["url"].startswith(PAGES):
                self.left = said["url"]
        elif name in ("Inspector.targetCrashed", "Target.targetCrashed"):
            raise PageFault("crashed its process: too much memory, perhaps")
        elif name in ("Inspector.detached", "Target.detachedFromTarget", "Target.targetDestroyed"):
            raise PageFault("closed itself")
        elif name == "Emulation.virtualTimeBudgetExpired":
            self.passed = True


def _first_line(details: dict[str, Any]) -> str:
    told = details.get("exception", {}).get("description") or details.get("text", "")
    return told.partition("\n")[0][:200] or "an error"
