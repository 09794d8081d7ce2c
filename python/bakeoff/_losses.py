"""Losses as the command line names them, from live ones of PyTorch too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from bakeoff._program import BakeoffError

_TORCH = {
    "CrossEntropyLoss": "softmax_cross_entropy",
    "MSELoss": "mse",
    "L1Loss": "l1",
    "BCEWithLogitsLoss": "bce_with_logits",
    "CTCLoss": "ctc",
}
_TORCH_IGNORES = -100  # by default


def loss_text(loss: Any, data: Any = None) -> Optional[str]:
    """ "softmax_cross_entropy,label_smoothing=0.1" of a text or an object of torch.nn.

    `data`: what is trained on; where no target is -100, torch's default of ignoring
    that label says nothing.
    """
    if loss is None or isinstance(loss, str):
        return loss
    name = type(loss).__name__
    if not type(loss).__module__.startswith("torch.nn."):
        raise BakeoffError(
            f"the loss is a {name}\n  give a name such as "
            '"softmax_cross_entropy,label_smoothing=0.1", or a loss of torch.nn'
        )
    if name not in _TORCH:
        raise BakeoffError(
            f"torch's loss {name} has no counterpart\n  those that have: "
            f"{', '.join(_TORCH)}"
        )
    for attribute in ("weight", "pos_weight"):
        if getattr(loss, attribute, None) is not None:
            raise BakeoffError(
                f"the loss {name} has a {attribute}, which Bakeoff's {_TORCH[name]} "
                "cannot take: it has no weights of classes\n  leave it out"
            )
    if loss.reduction not in ("mean", "sum"):
        raise BakeoffError(
            f"the loss {name} has reduction='{loss.reduction}', which gives no single "
            "number\n  mean or sum"
        )
    if name == "CTCLoss":
        _check_ctc(loss)
    words = [_TORCH[name]]
    if loss.reduction == "sum":
        words.append("reduction=sum")
    if name == "CrossEntropyLoss":
        if loss.label_smoothing:
            words.append(f"label_smoothing={float(loss.label_smoothing)!r}")
        if loss.ignore_index != _TORCH_IGNORES or _holds(data, _TORCH_IGNORES):
            words.append(f"ignore_index={int(loss.ignore_index)}")
    return ",".join(words)


def _check_ctc(loss: Any) -> None:
    said = ""
    if loss.blank != 0:
        said = f"blank={loss.blank}, and Bakeoff's ctc has blank=0"
    elif loss.zero_infinity:
        said = "zero_infinity=True, and no row of Bakeoff's ctc is infinite"
    elif loss.reduction == "mean":
        said = (
            "reduction='mean', which divides each row by its number of labels; "
            "Bakeoff's ctc does not\n  reduction='sum', or the name \"ctc\""
        )
    if said:
        raise BakeoffError(f"the loss CTCLoss has {said}")


def _holds(data: Any, value: int) -> bool:
    """Whether an array of integers among `data` holds the value."""
    import numpy as np  # type: ignore[import-not-found]

    if data is None:
        return False
    arrays = data.values() if isinstance(data, Mapping) else data
    found = (np.asarray(array) for array in arrays)
    return any(np.issubdtype(a.dtype, np.integer) and (a == value).any() for a in found)
