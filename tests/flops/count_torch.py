"""What torch's FlopCounterMode counts of one training step of emitted scripts.

Run by the Python of the torch environment: count_torch.py FOLDER... Prints a JSON line
for each: "counted" as the step is run, and "seen", with fused kernels that the counter does not
know (oneDNN's LSTM, flash attention on the CPU) replaced by the products they are made
of.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def count_in(folder: Path) -> dict[str, int]:
    script = load(folder / "train_torch.py")
    model = script.make_model()
    optimizer = script.make_optimizer(model)
    data = script.load_data(folder / "data.safetensors")
    arrays = data if isinstance(data, (tuple, list)) else (data,)
    batch = next(iter(script.batches(*arrays)))

    def count() -> int:
        with FlopCounterMode(display=False) as counter:
            script.train_step(model, optimizer, *batch)
        return int(counter.get_total_flops())

    counted = count()
    with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        seen = count()
    return {"counted": counted, "seen": seen}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(count_in(Path(name))), flush=True)
