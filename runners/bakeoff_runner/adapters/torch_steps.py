"""Training steps of torch scripts that have no ``train_step``.

``train_epoch(model, optimizer, batches)`` is the user's own loop: it is called with as
many batches as a burst has steps, and runs once over them. The loss of a step is the
tensor whose ``backward`` it calls. Where there is ``loss_fn(output, target)`` alone the
step is the one that every tutorial has.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Optional

from bakeoff_runner.adapter import AdapterError


class Epoch:
    """Batches as a DataLoader gives them: iterated once, with a length."""

    def __init__(
        self, batches: Iterable[Any], steps: int, rows: int, mark: Callable[[], None]
    ) -> None:
        self._batches = batches
        self._steps = steps
        self._mark = mark
        self.batch_size = rows // max(1, steps)
        self.dataset = range(rows)  # len(loader.dataset)

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._batches)
        for step in range(self._steps):
            if step > 0:
                self._mark()
            yield next(batches)
        self._mark()


def run_epoch(
    script: ModuleType, model: Any, optimizer: Any, batches: Epoch
) -> list[Any]:
    """Calls ``train_epoch``; the loss of every step, detached."""
    with _losses() as losses:
        script.train_epoch(model, optimizer, batches)
    if len(losses) != len(batches):
        raise AdapterError(
            f"train_epoch called backward() {len(losses)} times for {len(batches)} "
            "batches: it must train one step on each batch that it is given"
        )
    return losses


def default_step(script: ModuleType) -> Optional[Callable[..., Any]]:
    """A ``train_step`` from what the script has in place of it."""
    if callable(getattr(script, "train_epoch", None)):

        def one_batch(model: Any, optimizer: Any, *batch: Any) -> Any:
            epoch = Epoch([batch], 1, len(batch[0]), _nothing)
            return run_epoch(script, model, optimizer, epoch)[0]

        return one_batch
    if callable(getattr(script, "loss_fn", None)):

        def plain(model: Any, optimizer: Any, *batch: Any) -> Any:
            optimizer.zero_grad()
            loss = script.loss_fn(model(*batch[:-1]), batch[-1])
            loss.backward()
            optimizer.step()
            return loss.detach()

        return plain
    return None


def _nothing() -> None:
    pass


@contextlib.contextmanager
def _losses() -> Iterator[list[Any]]:
    """The tensors whose ``backward`` is called meanwhile."""
    import torch

    losses: list[Any] = []
    original = torch.Tensor.backward

    def backward(self: Any, *args: Any, **options: Any) -> Any:
        losses.append(self.detach())
        return original(self, *args, **options)

    torch.Tensor.backward = backward
    try:
        yield losses
    finally:
        torch.Tensor.backward = original
