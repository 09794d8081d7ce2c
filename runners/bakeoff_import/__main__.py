"""Serves one import: requests on descriptor 3, answers on descriptor 4, one JSON
object a line.

    {"id": 1, "op": "export", "file": ..., "function": ..., "inputs": [...], ...}
    {"id": 2, "op": "compute", "weights": FILE, "inputs": FILE, "train": true,
     "out": FILE}
    {"id": 3, "op": "trace", ...}

Tensors travel as safetensors files. An answer has "problem" where the user has to do
something, and "refused" with all unsupported ops. With ``--onnx`` the origin is an
ONNX file, which the program reads itself (``onnx_service``); with ``--keras`` the file
makes a Keras model.
"""

from __future__ import annotations

import sys
from typing import Any

from bakeoff_runner.channel import Channel


def serve(service: Any) -> int:
    channel = Channel(3, 4)
    while (request := channel.receive()) is not None:
        try:
            channel.answer(request.id, service.answer(request.op, request.fields))
        except Exception as error:
            channel.fail(request.id, request.op, error)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        from bakeoff_import import documentation

        keras = sys.argv[2:] == ["keras"]
        made = documentation.keras_table() if keras else documentation.torch_table()
        print(made, end="")
        sys.exit(0)
    if sys.argv[1:] == ["--onnx"]:
        from bakeoff_import.onnx_service import OnnxService

        sys.exit(serve(OnnxService()))
    if sys.argv[1:] == ["--keras"]:
        from bakeoff_import.keras_service import KerasService

        sys.exit(serve(KerasService()))
    from bakeoff_import.service import Service

    sys.exit(serve(Service()))
