"""A wire between a client and a server on this machine that can be cut, stopped in the middle, and counted."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from typing import Self


class Relay:
    """`with Relay(port) as relay:` then talk to `relay.port` instead."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self.port = 0
        self.down = 0  # bytes from the server
        self.stop_after: int | None = None  # bytes from the client, over all connections
        self.break_after: int | None = None  # bytes from the server, in one connection
        self.stopped = threading.Event()
        self._up = 0

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def mend(self) -> None:
        """Take calls again, on the same port as before."""
        self.stop_after, self._up = None, 0
        self.stopped.clear()
        self._door = socket.create_server(("127.0.0.1", self.port))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._welcome, args=(self._door,), daemon=True).start()

    def cut(self) -> None:
        """As if somebody had pulled the plug: calls end, and new ones are refused."""
        doomed, self._open = [self._door, *self._open], []
        for one in doomed:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _welcome(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = door.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                threading.Thread(target=self._carry_up, args=(client, server), daemon=True).start()
                threading.Thread(target=self._carry_down, args=(server, client), daemon=True).start()

    def _carry_up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                self._up += len(data)
                if self.stop_after is not None and self._up > self.stop_after:
                    self.stopped.set()
                    return  # the client goes on sending until its buffers are full, then waits
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _carry_down(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            carried = 0
            while data := server.recv(65536):
                self.down += len(data)
                carried += len(data)
                if self.break_after is not None and carried > self.break_after:
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)


def kill_in_the_middle(relay: Relay, process: subprocess.Popen[bytes], after: int) -> None:
    """Kill a writer whose bytes are on their way through the relay."""
    relay.stop_after = after
    assert relay.stopped.wait(60)
    process.kill()
    process.wait()
    relay.cut()
    relay.mend()
