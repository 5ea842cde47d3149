"""A hub on this machine with one model, for the hub's own client: the three questions that a download asks, and the files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serving(model: str, folder: Path, revisions: tuple[str, ...] = ("main",)) -> Iterator[tuple[str, list[str]]]:
    """The address of a hub that has `model` ("ORG/NAME") at these revisions, and the paths that it has been asked for."""
    asked: list[str] = []
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(path := unquote(self.path.partition("?")[0]))
            api = f"/api/models/{model}"
            revision = path.removeprefix(f"{api}/revision/") if "/revision/" in path else "main"
            if path.startswith(f"/{model}/resolve/") and (name := path.rsplit("/", 1)[1]) in files:
                self.reply(files[name], name)
            elif path.startswith(f"{api}/tree/"):
                entries = [
                    {"type": "file", "path": name, "size": len(data), "oid": sha1(data).hexdigest()} for name, data in files.items()
                ]
                self.reply(json.dumps(entries).encode())
            elif not path.startswith(api):
                self.refuse("RepoNotFound")
            elif revision not in (*revisions, COMMIT):
                self.refuse("RevisionNotFound")
            else:
                siblings = [{"rfilename": name} for name in files]
                self.reply(json.dumps({"id": model, "sha": COMMIT, "siblings": siblings}).encode())

        do_HEAD = do_GET

        def refuse(self, code: str) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def reply(self, data: bytes, name: str = "") -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/octet-stream" if name else "application/json")
            if name:
                self.send_header("ETag", f'"{sha1(data).hexdigest()}"')
                self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def log_message(self, *about: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
