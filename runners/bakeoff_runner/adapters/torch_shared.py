"""What the adapter of torch shares with that of Keras on torch."""

from __future__ import annotations

import sys
from typing import Any

from bakeoff_runner.adapter import Peak
from bakeoff_runner.transfers import Arrays, Device


def torch_compilations() -> int:
    """Graphs of torch.compile; 0 where nothing has imported it."""
    utilities = sys.modules.get("torch._dynamo.utils")
    return int(utilities.counters["stats"]["unique_graphs"]) if utilities else 0


def torch_peak() -> Peak:
    import torch

    if not torch.cuda.is_available():
        return "torch's allocator keeps no count on the CPU"
    return int(torch.cuda.max_memory_allocated())


def torch_device(name: str) -> Device:
    import torch

    def wait(_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    wait(None)
    return Device(lambda array: torch.from_numpy(array).to(name), wait)


def torch_arrays() -> Arrays:
    import torch

    def copy(tensor: Any) -> Any:
        tensor = tensor.detach().cpu()
        return tensor if tensor.element_size() > 2 else tensor.float()

    return {torch.Tensor: copy}


def limit_threads(threads: int) -> None:
    """Gives torch this number, unless it has it by ``OMP_NUM_THREADS`` already.

    The call switches off MKL's own choice of fewer threads for small products; setting
    the variable alone keeps it.
    """
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def stay_eager(eager: bool) -> None:
    """Passes over torch.compile and model.compile, or not, where this torch can."""
    import torch

    set_stance = getattr(torch.compiler, "set_stance", None)
    if set_stance is not None:
        set_stance("force_eager" if eager else "default")
