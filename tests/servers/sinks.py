"""Receivers of alerts: an HTTP server and a mail server of the tests' own, over real TCP on 127.0.0.1."""

from __future__ import annotations

import json
import socketserver
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self


class _Sink:
    """A server in a thread that keeps what it was told."""

    def __init__(self, server: socketserver.BaseServer) -> None:
        self._server = server
        self.port: int = server.server_address[1]  # type: ignore[index]

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class HttpSink(_Sink):
    """Keeps every JSON object that is posted to it."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        self.url = f"http://127.0.0.1:{self.port}/alerts"


class MailSink(_Sink):
    """Speaks as much SMTP as it takes to be handed a message."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        received = self.received

        class Handler(socketserver.StreamRequestHandler):
            def say(self, words: str) -> None:
                self.wfile.write(words.encode() + b"\r\n")

            def handle(self) -> None:
                self.say("220 sink")
                for line in self.rfile:
                    verb = line.split()[0].upper() if line.split() else b""
                    if verb == b"DATA":
                        self.say("354 go on")
                        received.append(message_from_bytes(self.message()))
                    elif verb == b"QUIT":
                        self.say("221 bye")
                        return
                    self.say("250 ok")

            def message(self) -> bytes:
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line.removeprefix(b"."))
                return b"".join(lines)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        super().__init__(Server(("127.0.0.1", 0), Handler))
