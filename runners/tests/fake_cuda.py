"""CUDA graphs on a CPU: what is captured is written down, and replayed op by op.

As on a GPU, capturing computes nothing: tensors that were there before keep their
values, those made meanwhile hold NaN until the first replay, which writes into the same
memory every time. Asking a tensor for a number is an error while capturing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, ClassVar, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Stream:
    def wait_stream(self, other: Stream) -> None:
        assert isinstance(other, Stream)


class Graph:
    """Stands in for torch.cuda.CUDAGraph."""

    made: ClassVar[list[Graph]] = []

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, Any, list[Any]]] = []
        self.replays = 0
        Graph.made.append(self)

    def replay(self) -> None:
        assert self.calls, "nothing was captured"
        self.replays += 1
        with torch.no_grad():
            for function, arguments, options, kept in self.calls:
                made = tensors(function(*arguments, **options))
                for old, new in zip(kept, made):
                    if old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class _Recorder(TorchDispatchMode):
    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph = graph
        # By address: what a memory held before the capture; None: made meanwhile.
        self.before: dict[int, Any] = {}
        self.made: list[Any] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("a number was asked for while capturing")
        options = kwargs or {}
        for tensor in tensors((args, options)):
            memory = tensor.untyped_storage()
            if memory.data_ptr() not in self.before:
                self.before[memory.data_ptr()] = memory, memory.clone()
        result = function(*args, **options)
        for tensor in tensors(result):
            if self.before.setdefault(tensor.untyped_storage().data_ptr()) is None:
                self.made.append(tensor)
        self._graph.calls.append((function, args, options, tensors(result)))
        return result


def tensors(structure: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(structure) if isinstance(leaf, torch.Tensor)]


@contextmanager
def capture(graph: Graph) -> Iterator[None]:
    """Stands in for torch.cuda.graph."""
    recorder = _Recorder(graph)
    with recorder:
        yield
    for kept in recorder.before.values():
        if kept is not None:
            memory, old = kept
            memory.copy_(old)
    with torch.no_grad():
        for tensor in recorder.made:
            if tensor.is_floating_point():
                tensor.fill_(float("nan"))


@contextmanager
def stream(_: Stream) -> Iterator[None]:
    yield


def install(monkeypatch: Any) -> None:
    """Puts them in place of torch's, until the test ends."""
    Graph.made = []
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
