"""A headless Chromium that opens pages and says what is wrong with them.

It is told what to do through two pipes, in messages of https://chromedevtools.github.io/devtools-protocol.
"""

import fcntl
import json
import os
import shutil
from pathlib import Path

#: Names of the program: Debian's, that of its package without a screen, and Google's.
PROGRAMS = ("chromium", "chromium-headless-shell", "google-chrome")
#: Widths of a window, in pixels: a screen's and a telephone's.
WIDTHS = (1280, 390)
MISSING = "no browser here; install one with: apt-get install chromium"
_WIDER = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


def find():
    """The browser's path, None if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Browser:
    """One page of a headless Chromium. What it writes to standard error goes nowhere."""

    def __init__(self, profile):
        read, self._send = os.pipe()
        self._receive, write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]    # 3 and 4 are the browser's
        words = [find(), "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 f"--user-data-dir={profile}", *(["--no-sandbox"] if os.getuid() == 0 else [])]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        self._process = os.posix_spawn(words[0], words, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4),
            (os.POSIX_SPAWN_DUP2, nowhere, 1), (os.POSIX_SPAWN_DUP2, nowhere, 2)])
        for end in (read, write, nowhere, *ends):
            os.close(end)
        self._rest, self._number, self._session, self._events = b"", 0, None, []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def close(self):
        """End it."""
        self._session = None
        self._call("Browser.close")
        os.waitpid(self._process, 0)
        os.close(self._send)
        os.close(self._receive)

    def _next(self):
        while b"\0" not in self._rest:
            got = os.read(self._receive, 1 << 16)
            if not got:
                raise EOFError("the browser has ended")
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        os.write(self._send, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode()
                 + b"\0")
        while (got := self._next()).get("id") != self._number:
            self._events.append(got)
        if "error" in got:
            raise RuntimeError(f"{method}: {got['error']}")
        return got["result"]

    def _width(self, width):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=False)

    def complaints(self, path):
        """Open a file; what scripts, files that it loads, and its width have against it, a line each."""
        self._events.clear()
        self._width(WIDTHS[0])
        self._call("Page.navigate", url=Path(path).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())
        found = []
        for width in WIDTHS:
            self._width(width)
            wider = self._call("Runtime.evaluate", expression=_WIDER)["result"]["value"]
            found += [f"{wider} pixels wider than {width}"] if wider > 0 else []
        for event in self._events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(f"script: {params['exceptionDetails'].get('exception', {}).get('description')}")
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}".strip())
        return found
