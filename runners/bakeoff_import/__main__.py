"""Serves one import: requests on descriptor 3, answers on descriptor 4, one JSON
object a line.

    {"id": 1, "op": "export", "file": ..., "function": ..., "inputs": [...], ...}
    {"id": 2, "op": "compute", "weights": FILE, "inputs": FILE, "train": true,
     "out": FILE}
    {"id": 3, "op": "trace", ...}

Tensors travel as safetensors files. An answer has "problem" where the user has to do
something, and "refused" with all unsupported ops. With ``--onnx`` the origin is an
ONNX file, which the program reads itself (``onnx_service``); with ``--keras`` the file
makes a Keras model, and ``--keras=LOSS`` names the loss of one that has none. With
``--relay SOCKET`` another process has the model, and serves (``relay``).
"""

from __future__ import annotations

import sys

from bakeoff_import.relay import serve
from bakeoff_runner.channel import Channel

if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        from bakeoff_import import documentation

        keras = sys.argv[2:] == ["keras"]
        made = documentation.keras_table() if keras else documentation.torch_table()
        print(made, end="")
        sys.exit(0)
    if sys.argv[1:] == ["--onnx"]:
        from bakeoff_import.onnx_service import OnnxService

        sys.exit(serve(OnnxService(), Channel(3, 4)))
    framework, _, loss = "".join(sys.argv[1:2]).partition("=")
    if "--relay" in sys.argv:
        from bakeoff_import.relay import relay

        sys.exit(relay(sys.argv[-1], loss))
    if framework == "--keras":
        from bakeoff_import.keras_service import KerasService

        sys.exit(serve(KerasService(loss_if_none=loss), Channel(3, 4)))
    from bakeoff_import.service import Service

    sys.exit(serve(Service(), Channel(3, 4)))
