"""A real HTTP server on this machine that serves byte ranges, slowly or badly on request."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PIECE = 1 << 16


@dataclass
class Served:
    """What is served and how; `starts` records where each request began to read."""

    files: dict[str, bytes]
    address: str = ""
    pause_seconds: float = 0.0
    cut_after: int | None = None
    knows_ranges: bool = True
    starts: list[int] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Served]:
    served = Served(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = served.files.get(self.path.strip("/"))
            if content is None:
                self.send_error(404)
                return
            asked = self.headers.get("Range") if served.knows_ranges else None
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
            served.starts.append(start)
            if start > len(content):
                self.send_error(416)
                return
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            stop = len(content) if served.cut_after is None else served.cut_after
            try:
                for begin in range(start, stop, _PIECE):
                    self.wfile.write(content[begin : min(begin + _PIECE, stop)])
                    time.sleep(served.pause_seconds)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client was killed: that is what the test is about

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
