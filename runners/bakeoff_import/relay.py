"""Serves an import, here or in a process that has the model already.

A notebook's model cannot travel to another process. The program starts this package
with ``--relay SOCKET`` as ever, and the lines are passed on to the process that listens
there. It is told first where this package lies, so that it can import the same one.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

from bakeoff_runner.channel import Channel

_SIZE = 1 << 16  # bytes that are passed on at once


def serve(service: Any, channel: Channel) -> int:
    """Answers requests until there are none."""
    while (request := channel.receive()) is not None:
        try:
            channel.answer(request.id, service.answer(request.op, request.fields))
        except Exception as error:
            channel.fail(request.id, request.op, error)
    return 0


def relay(path: str, loss: str) -> int:
    """loss: of a model that has none."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(path)
    hello = {"runner": str(Path(__file__).resolve().parent.parent), "loss": loss}
    link.sendall(json.dumps(hello).encode() + b"\n")

    def requests() -> None:
        while data := os.read(3, _SIZE):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)

    threading.Thread(target=requests, daemon=True).start()
    while data := link.recv(_SIZE):
        view = memoryview(data)
        while view:
            view = view[os.write(4, view) :]
    return 0
