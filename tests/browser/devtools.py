"""A small driver for Chromium: its DevTools protocol over a plain socket, nothing to install."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class Page:
    """One tab. Every console message, exception and request since it was opened is kept."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = b""
        self._next_id = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._events: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are noted."""
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": parameters}
        self._send(json.dumps(message).encode())
        while True:
            answer = json.loads(self._receive())
            if answer.get("id") == self._next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self._events.clear()
        self.call("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            self._note(json.loads(self._receive()))

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; an exception in it is an error here."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click the middle of an element with a real pointer."""
        x, y = self.centre(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def point_at(self, selector: str) -> None:
        """Move the pointer onto the middle of an element."""
        x, y = self.centre(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def centre(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view and return where its middle is."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        return float(box[0]), float(box[1])

    def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def resize(self, width: int, height: int) -> None:
        """Change the window's size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Ask for a light or a dark page."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, path: Path) -> None:
        """Write what the window shows."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _note(self, event: dict[str, Any]) -> None:
        kind, content = event.get("method", ""), event.get("params", {})
        self._events.append(kind)
        if kind == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(content["exceptionDetails"]))
        elif kind == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.complaints.append(content["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(content["args"]))
        elif kind == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])

    # RFC 6455: clients mask their frames; payloads here are text below 2^63 bytes.
    def _send(self, payload: bytes) -> None:
        length = len(payload)
        size = (
            bytes([0x80 | length])
            if length < 126
            else bytes([0x80 | 126]) + length.to_bytes(2, "big")
            if length < 2**16
            else bytes([0x80 | 127]) + length.to_bytes(8, "big")
        )
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self._socket.sendall(b"\x81" + size + mask + masked)

    def _receive(self) -> bytes:
        message = b""
        while True:
            first, second = self._read(2)
            length = second & 0x7F
            if length >= 126:
                length = int.from_bytes(self._read(2 if length == 126 else 8), "big")
            payload = self._read(length)
            if first & 0x0F in (0x0, 0x1):
                message += payload
                if first & 0x80:
                    return message

    def _read(self, num_bytes: int) -> bytes:
        while len(self._buffer) < num_bytes:
            more = self._socket.recv(1 << 16)
            if not more:
                raise ConnectionError("Chromium closed the connection.")
            self._buffer += more
        taken, self._buffer = self._buffer[:num_bytes], self._buffer[num_bytes:]
        return taken


@contextmanager
def opened_page(profile: Path) -> Iterator[Page]:
    """Start Chromium with a profile of its own and yield its first tab."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = _port(profile / "DevToolsActivePort", browser)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=20) as listing:
            tabs = json.loads(listing.read())
        address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        with _upgraded(port, address) as connection:
            yield Page(connection)
    finally:
        browser.terminate()
        browser.wait(timeout=20)


def _port(file: Path, browser: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and browser.poll() is None:
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.05)
    raise RuntimeError(f"Chromium did not open a port (exit code {browser.poll()}).")


def _upgraded(port: int, address: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    path = address.split(f":{port}", 1)[1]
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    if b" 101 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"Chromium refused the web socket: {head!r}")
    return connection
