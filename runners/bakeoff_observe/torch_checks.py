"""Mistakes that PyTorch scripts make, as facts: what is wrong, or only slow.

Losses of shapes that do not fit, softmax before a cross entropy, parameters that never
change, graphs that are kept, cells of recurrent networks that are called one by one.
They are found by what happens in the first steps, since the same line is right with one
shape and wrong with another. Each look costs time, so it is made in few steps, ahead of
those that are timed, and taken away again. A check tells what it saw; whether that is a
cause is decided by the supervisor's rules.
"""

from __future__ import annotations

import functools
import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any, Callable

from bakeoff_observe.functions import own_line
from bakeoff_observe.values import Inert, sums_of

if TYPE_CHECKING:
    from bakeoff_observe.torch_hooks import TorchHooks

_LOOKS = 3  # calls of each loss function that are looked at
_SMALL = 5_000_000  # parameters of which each report takes sums
_BROADCAST = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_SOME = 16  # steps that a growth is told of
# Arguments of a checkpoint that its function does not get.
_CHECKPOINT = (
    "use_reentrant",
    "preserve_rng_state",
    "context_fn",
    "determinism_check",
    "debug",
    "early_stop",
)


class Checks:
    def __init__(self, hooks: TorchHooks) -> None:
        self.hooks, self.torch, self.observer = hooks, hooks.torch, hooks.observer
        self.restores: list[Callable[[], None]] = []
        self.broadcast: list[list[int]] = []
        self.line = 0
        self.checkpoint_line = 0
        self.softmax: list[bool] = []  # of each cross entropy that was looked at
        self.sums: dict[str, tuple[float, float]] = {}  # and norms, of parameters
        self.unchanged: list[str] = []
        self.summed = 0  # steps when they were taken first
        self.kept = 0
        self.kept_at = 0
        self.history = False
        self.cells: list[Any] = []  # hooks of one step
        self.rows = 0  # that the loss compares
        self.time_first: dict[str, list[int]] = {}  # shapes that such layers get
        self.cell_calls = 0

    # ---- losses

    def watch(self) -> None:
        functional = self.torch.nn.functional
        for name in _BROADCAST:
            self.look(functional, name, self.shapes)
        self.look(functional, "cross_entropy", self.probabilities)
        self.watch_checkpoints()
        # They would become part of what is compiled.
        for place, name in (
            (self.torch, "compile"),
            (self.torch.nn.Module, "compile"),
            (self.torch.jit, "script"),
            (self.torch.jit, "trace"),
        ):
            self.restoring(place, name)

    def look(self, place: Any, name: str, check: Callable[..., None]) -> None:
        inner, calls = getattr(place, name), 0

        @functools.wraps(inner)
        def looked(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            if calls < _LOOKS:
                calls += 1
                try:
                    prediction, target = [*args, *kwargs.values()][:2]
                    self.rows = int(target.shape[0]) if target.dim() else 0
                    check(prediction, target)
                except Exception:  # a fact that cannot be had is no fact
                    calls = _LOOKS
                if calls == _LOOKS:
                    restore()
            return inner(*args, **kwargs)

        def restore() -> None:
            if getattr(place, name) is looked:
                setattr(place, name, inner)

        setattr(place, name, looked)
        self.restores.append(restore)

    def restoring(self, place: Any, name: str) -> None:
        inner = getattr(place, name)

        @functools.wraps(inner)
        def first(*args: Any, **kwargs: Any) -> Any:
            for restore in self.restores:
                restore()
            return inner(*args, **kwargs)

        def restore() -> None:
            if getattr(place, name) is first:
                setattr(place, name, inner)

        setattr(place, name, first)
        self.restores.append(restore)

    def shapes(self, prediction: Any, target: Any) -> None:
        if not self.broadcast and prediction.shape != target.shape:
            self.broadcast = [list(prediction.shape), list(target.shape)]
            self.line = own_line(sys._getframe(2))

    def probabilities(self, prediction: Any, target: Any) -> None:
        if not prediction.requires_grad or prediction.dim() < 2:
            return
        x = prediction.detach().to(self.torch.float64)
        classes = x.shape[1]
        found = classes > 1 and bool((x >= 0).all())
        found = found and bool(((x.sum(1) - 1).abs() < 1e-2).all())
        self.softmax.append(found)
        if found and not self.line:
            self.line = own_line(sys._getframe(2))

    # ---- activations that are computed twice

    def watch_checkpoints(self) -> None:
        place: Any = importlib.import_module("torch.utils.checkpoint")
        inner, observer = place.checkpoint, self.observer
        process = self.hooks.process
        skipped = "no_checkpoints" in process.switches

        @functools.wraps(inner)
        def checkpointed(function: Any, *args: Any, **kwargs: Any) -> Any:
            observer.count("checkpoints")
            if not self.checkpoint_line:
                self.checkpoint_line = own_line(sys._getframe(1))
            if not skipped:
                return inner(function, *args, **kwargs)
            process.threw("no_checkpoints")
            for name in _CHECKPOINT:
                kwargs.pop(name, None)
            return function(*args, **kwargs)

        def restore() -> None:
            if place.checkpoint is checkpointed and not skipped:
                place.checkpoint = inner

        place.checkpoint = checkpointed
        self.restores.append(restore)

    # ---- cells of recurrent networks

    def watch_cells(self, roots: list[Any]) -> None:
        """Counts their calls in the next step."""
        cells = self.torch.nn.modules.rnn.RNNCellBase

        def called(module: Any, args: Any) -> None:
            self.cell_calls += 1

        def layer(module: Any, args: Any) -> None:
            if not args or module.batch_first:
                return
            rows: Any = args[0]  # packed ones have no shape
            if getattr(rows, "ndim", 0) == 3:
                self.time_first[type(module).__name__] = list(rows.shape)

        layers = self.torch.nn.RNNBase
        for root in roots:
            if getattr(root, "_compiled_call_impl", None) is None:
                self.cells += [
                    module.register_forward_pre_hook(
                        called if isinstance(module, cells) else layer
                    )
                    for module in root.modules()
                    if isinstance(module, (cells, layers))
                ]

    def stepped(self) -> None:
        """That step is over."""
        for handle in self.cells:
            handle.remove()
        self.cells = []

    # ---- what reports compare

    def facts(self, parameters: int) -> dict[str, Any]:
        steps = self.observer.before + len(self.observer.marks)
        if 0 < parameters < _SMALL:
            self.compare_sums(steps)
        self.compare_kept(steps)
        found: dict[str, Any] = {
            "mkldnn": bool(self.torch.backends.mkldnn.enabled),
            "history": self.history,
            "profiler": bool(self.torch._C._autograd._profiler_enabled()),
            "checkpoints_per_step": self.observer.per_step("checkpoints"),
            "lines": {},
        }
        if self.checkpoint_line:
            found["lines"]["checkpoint"] = self.checkpoint_line
        if self.broadcast:
            found["broadcast_loss"] = self.broadcast
        if self.softmax:
            found["double_softmax"] = all(self.softmax)
        if self.line and (self.broadcast or all(self.softmax)):
            word = "broadcast_loss" if self.broadcast else "double_softmax"
            found["lines"][word] = self.line
        if self.unchanged:
            found["unchanged"] = self.unchanged
        swapped = [
            [name, shape]
            for name, shape in self.time_first.items()
            if 1 < self.rows == shape[0] and shape[1] not in (1, self.rows)
        ]
        if swapped:
            found["batch_as_time"] = swapped[0]
        if self.cell_calls:
            found["cell_calls_per_step"] = self.cell_calls
        return found

    def compare_sums(self, steps: int) -> None:
        """Parameters that want gradients, and are what they were some steps ago."""
        sums = {
            name: sums_of(self.torch, p)
            for root in self.hooks.roots or []
            for name, p in root.named_parameters()
            if p.requires_grad and p.is_floating_point()
        }
        if not self.sums:
            self.sums, self.summed = sums, steps
        elif steps - self.summed >= _SOME:
            same = [name for name in sums if self.sums.get(name) == sums[name]]
            self.unchanged = same[:8]

    def compare_kept(self, steps: int) -> None:
        """Whether the script keeps losses with what they were computed from."""
        kept = self.graphs()
        epochs = self.observer.epochs
        since = len(self.observer.marks) - epochs[-1] if epochs else 0
        more = steps - self.kept_at
        if self.kept_at and more >= _SOME and kept - self.kept >= more / 2:
            self.history = True
        elif since >= _SOME and 0.9 * since - 2 <= kept <= 1.1 * since + 2:
            self.history = True  # those of an epoch
        self.kept, self.kept_at = kept, steps

    def graphs(self) -> int:
        """Numbers that hold a graph, and how many were added up in one of them."""
        tensor, count, longest = self.torch.Tensor, 0, 0
        for x in gc.get_objects():
            if type(x) is not tensor or x.grad_fn is None or x.numel() != 1:
                continue
            count += 1
            node, length = x.grad_fn, 0
            while node is not None and length < 1_000_000:
                if not node.name().startswith("AddBackward"):
                    break
                node, length = node.next_functions[0][0], length + 1
            longest = max(longest, length)
        return count + longest


# ---- switches


def throw_free_graph(hooks: TorchHooks, on: Any) -> None:
    """A loss is a number after its backward."""
    tensors = hooks.torch.Tensor
    backward = tensors.backward

    @functools.wraps(backward)
    def freed(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        done = backward(tensor, *args, **kwargs)
        kept = (
            any(args[1:3]) or kwargs.get("retain_graph") or kwargs.get("create_graph")
        )
        if not kept and tensor.grad_fn is not None:
            try:
                tensor.detach_()
            except RuntimeError:  # a view of something
                return done
            hooks.process.threw("free_graph")
        return done

    tensors.backward = freed


class Silent(Inert):
    """A profiler that sees nothing, whatever it is asked."""

    def __enter__(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: Silent()

    def __str__(self) -> str:
        return "no profile"


def throw_no_profiler(hooks: TorchHooks, on: Any) -> None:
    """Profilers of PyTorch do not start."""

    class Profiler(Silent):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            hooks.process.threw("no_profiler")

    torch = hooks.torch
    torch.profiler.profile = torch.autograd.profiler.profile = Profiler


def throw_mkldnn(hooks: TorchHooks, on: Any) -> None:
    """oneDNN is on, whatever the script says."""
    torch = hooks.torch
    turn = torch._C._set_mkldnn_enabled

    def ignored(on: bool) -> None:
        if not on:
            hooks.process.threw("mkldnn")

    turn(True)
    torch._C._set_mkldnn_enabled = ignored
    kind = type(torch.backends.mkldnn)
    kind.enabled = type(kind.__dict__["enabled"])(torch._C._get_mkldnn_enabled, ignored)
