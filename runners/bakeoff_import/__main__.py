"""Serves one import: requests on descriptor 3, answers on descriptor 4, one JSON
object a line.

    {"id": 1, "op": "export", "file": ..., "function": ..., "inputs": [...], ...}
    {"id": 2, "op": "compute", "weights": FILE, "inputs": FILE, "train": true,
     "out": FILE}
    {"id": 3, "op": "trace", ...}

Tensors travel as safetensors files. An answer has "problem" where the user has to do
something, and "refused" with all unsupported ops.
"""

from __future__ import annotations

import sys

from bakeoff_runner.channel import Channel


def serve() -> int:
    from bakeoff_import.service import Service

    channel = Channel(3, 4)
    service = Service()
    while (request := channel.receive()) is not None:
        try:
            channel.answer(request.id, service.answer(request.op, request.fields))
        except Exception as error:
            channel.fail(request.id, request.op, error)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        from bakeoff_import.documentation import table

        print(table(), end="")
        sys.exit(0)
    sys.exit(serve())
