"""How many threads torch computes with, for its own adapter and for Keras on torch."""

from __future__ import annotations


def limit_threads(threads: int) -> None:
    """Gives torch this number, unless it has it by ``OMP_NUM_THREADS`` already.

    The call switches off MKL's own choice of fewer threads for small products. Setting
    only the variable keeps that choice.
    """
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def stay_eager() -> None:
    """Passes over torch.compile and model.compile, where this torch can do so."""
    import torch

    set_stance = getattr(torch.compiler, "set_stance", None)
    if set_stance is not None:
        set_stance("force_eager")
