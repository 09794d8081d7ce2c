"""What is seen of a PyTorch script, and the switches that can be thrown in it.

A step ends with ``Optimizer.step`` of the optimizer that stepped first; in a loop
without optimizers, with ``backward``. Scripts with several optimizers, models that are
trained one after another, or prediction alone make this harder than it sounds: Leader
(values.py) decides which candidate counts. Hooks replace functions of torch; steps that
are timed are never traced or profiled, which would slow exactly what is measured. A
switch changes what the script asks for (a layout, a compiled model, workers) and says
that it did: one that was thrown and met nothing must not be mistaken for one that did
not help.
"""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import time
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Optional

from bakeoff_observe.functions import is_own, own_line
from bakeoff_observe.imports import AfterImport
from bakeoff_observe.observer import Facts, Hooks
from bakeoff_observe.profiles import Profile, TorchProfile
from bakeoff_observe.torch_checks import (
    Checks,
    throw_free_graph,
    throw_mkldnn,
    throw_no_profiler,
)
from bakeoff_observe.values import Inert, Leader, leaves, sums_of

if TYPE_CHECKING:
    from bakeoff_observe.process import Process

now = time.monotonic_ns
_PASSES, _FEW_PASSES = 4096, 8  # backward passes of a step: that are kept, and many
_LARGE = 1_000_000  # numbers of an embedding
_CALLS = 4096  # of a model, whose sizes are kept
_OPTIMIZERS = 7  # besides the one whose steps count, that are known


class Trend:
    """How long the backward passes of one step take, from its first to its last."""

    def __init__(self) -> None:
        self.now: list[int] = []  # ns of each of the step that is under way
        self.steps: list[list[int]] = []
        self.retains = 0  # that keep their graph
        self.line = 0

    def add(self, ns: int, retains: bool) -> None:
        if len(self.now) < _PASSES:
            self.now.append(ns)
        if retains:
            self.retains += 1
            if not self.line:
                self.line = own_line(sys._getframe(2)) or -1

    def step(self) -> None:
        if len(self.now) >= _FEW_PASSES and len(self.steps) < 64:
            self.steps.append(self.now)
        self.now = []

    def facts(self) -> dict[str, Any]:
        """Of steps of many passes: those at their beginning, at their end, and what
        all take beyond what as many of the beginning would, in seconds."""
        if not self.steps:
            return {}
        few = [max(2, len(one) // 10) for one in self.steps]
        first = [sum(one[:n]) / n for one, n in zip(self.steps, few)]
        last = [sum(one[-n:]) / n for one, n in zip(self.steps, few)]
        more = [sum(one) - len(one) * f for one, f in zip(self.steps, first)]
        count = len(self.steps)
        told = {
            "passes": sum(map(len, self.steps)) / count,
            "first_s": 1e-9 * sum(first) / count,
            "last_s": 1e-9 * sum(last) / count,
            "more_s": 1e-9 * sum(more) / count,
            "retains": self.retains > 0,
            "line": max(0, self.line),
        }
        return {"backward_trend": told}


class Discarded:
    """Backward passes that make gradients which `zero_grad` throws away, unused.

    One parameter of each optimizer, the first with a gradient, tells of all.
    """

    def __init__(self, torch: Any) -> None:
        optimizer = torch.optim.Optimizer
        self.made: dict[int, int] = {}  # gradients since the last step, by optimizer
        self.thrown: dict[int, int] = {}  # passes, by the line of zero_grad
        self.steps = False  # an optimizer does, and may take gradients by itself
        zero = optimizer.zero_grad

        @functools.wraps(zero)
        def zeroed(one: Any, *args: Any, **kwargs: Any) -> Any:
            unused = self.made.get(id(one), 0)
            if unused and not self.steps:
                line = own_line(sys._getframe(1))
                self.thrown[line] = self.thrown.get(line, 0) + unused
            elif id(one) not in self.made:
                self.watch(one)
            self.made[id(one)] = 0
            return zero(one, *args, **kwargs)

        optimizer.zero_grad = zeroed

    def watch(self, optimizer: Any) -> None:
        key = id(optimizer)

        def made(parameter: Any) -> None:
            self.made[key] = self.made.get(key, 0) + 1

        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.is_leaf and parameter.requires_grad:
                    parameter.register_post_accumulate_grad_hook(made)
                    return

    def stepped(self, optimizer: Any) -> None:
        self.steps = False
        if id(optimizer) in self.made:
            self.made[id(optimizer)] = 0

    def facts(self, steps: int) -> dict[str, Any]:
        if not self.thrown:
            return {}
        line = max(self.thrown, key=lambda one: self.thrown[one])
        passes = sum(self.thrown.values()) / max(1, steps)
        return {"unused_gradients": {"passes": passes, "line": line}}


class ModelCalls:
    """Outermost calls of the model that is called first, in a script that trains none.

    `Module.__call__` is watched until something trains or is compiled; a compiled
    model is watched from outside.
    """

    def __init__(self, hooks: TorchHooks) -> None:
        self.hooks, self.observer = hooks, hooks.observer
        self.module = hooks.torch.nn.Module
        self.inner = self.module.__call__
        self.model: Any = None
        self.optimized: Any = None  # the class of compiled models
        self.depth = 0
        self.sizes: list[tuple[int, int]] = []  # numbers of its input, ns of a call
        self.graphs = 0  # calls whose results keep what they were computed from
        self.calls = 0
        self.acts: list[Callable[[Any], None]] = []  # before its first call
        self.module.__call__ = self.watched(self.inner)
        compile_one, compile_ = self.module.compile, hooks.torch.compile

        def compiled_one(module: Any, *args: Any, **kwargs: Any) -> Any:
            self.forget()
            return compile_one(module, *args, **kwargs)

        @functools.wraps(compile_)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            self.forget()
            made = compile_(*args, **kwargs)
            of = type(made)
            if of.__name__ == "OptimizedModule" and of is not self.optimized:
                self.optimized = of
                of.__call__ = self.watched(of.__call__)
            return made

        self.module.compile = compiled_one
        hooks.torch.compile = compiled

    def forget(self) -> None:
        self.module.__call__ = self.inner

    def watched(self, inner: Any) -> Any:
        observer, thread = self.observer, self.observer.thread
        grad = self.hooks.torch.is_grad_enabled

        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.depth or get_ident() != thread:
                return inner(module, *args, **kwargs)
            if observer.kind not in ("", "call"):
                self.forget()
                return inner(module, *args, **kwargs)
            if self.model is None:
                self.model = module
                for act in self.acts:
                    act(module)
            self.depth, since = 1, now()
            try:
                made = inner(module, *args, **kwargs)
            finally:
                self.depth = 0
            if module is self.model:
                if args and len(self.sizes) < _CALLS and hasattr(args[0], "numel"):
                    self.sizes.append((args[0].numel(), now() - since))
                self.calls += 1
                self.graphs += grad()
                if not self.hooks.inputs:
                    given = [*args, *kwargs.values()]
                    is_tensor = self.hooks.torch.is_tensor
                    found = [_described(x) for x in given if is_tensor(x)]
                    if found and found[0]["shape"]:
                        first = next(x for x in given if is_tensor(x))
                        found[0]["shape"][0] *= _mapped(self.hooks.torch, first)
                    self.hooks.inputs = found
                    self.hooks.autocast = _autocast(self.hooks.torch)
                observer.boundary("call")
            return made

        return called

    def parameters(self) -> list[Any]:
        return list(self.model.parameters()) if self.model is not None else []

    def facts(self) -> dict[str, Any]:
        if not self.calls:
            return {}
        return {"graphs_of_calls": self.graphs / self.calls, **self.growth()}

    def growth(self) -> dict[str, Any]:
        """Of inputs that become longer from call to call: what a call takes beyond
        those of the smallest tenth of them, in seconds."""
        pairs = list(zip(self.sizes, self.sizes[1:]))
        grown = sum(after[0] > before[0] for before, after in pairs)
        if len(pairs) < 32 or 2 * grown < len(pairs):
            return {}
        few = sorted(self.sizes)[: len(self.sizes) // 10]
        mean = sum(ns for _, ns in self.sizes) / len(self.sizes)
        least = sum(ns for _, ns in few) / len(few)
        sizes = [size for size, _ in self.sizes]
        told = {"least": min(sizes), "most": max(sizes), "mean_s": 1e-9 * mean}
        return {"growing_input": {**told, "more_s": 1e-9 * (mean - least)}}


class TorchHooks(Hooks):
    def __init__(self, torch: Any, process: Process) -> None:
        super().__init__("torch", str(torch.__version__))
        self.torch, self.process = torch, process
        self.observer = process.observer
        self.optimizers: list[Any] = []  # first the one whose steps count
        self.leader = Leader()  # by the first parameter of an optimizer
        self.roots: Optional[list[Any]] = None
        self.sums: dict[int, tuple[float, float]] = {}  # of parameters with gradients
        self.inputs: list[dict[str, Any]] = []
        self.loss_name = ""
        self.padding = 0.0  # share of columns of its input that hold one value alone
        self.autocast = ""
        self.checks = Checks(self)
        self.trend = Trend()
        self.discarded = Discarded(torch)

    # ---- steps

    def install(self) -> None:
        torch, observer = self.torch, self.observer
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        since = [0]

        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            since[0] = now()
            self.discarded.steps = True

        register_optimizer_step_pre_hook(steps)

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            took = now() - since[0]
            observer.spent["optimizer"] = observer.spent.get("optimizer", 0) + took
            self.trend.step()
            self.discarded.stepped(optimizer)
            if self.checks.cells:
                self.checks.stepped()
            if self.leader(first_parameter(optimizer)):
                if not self.optimizers or optimizer is not self.optimizers[0]:
                    self.lead(optimizer)
                observer.boundary("optimizer")
            elif not any(optimizer is known for known in self.optimizers):
                self.optimizers = [*self.others_than(optimizer), optimizer]

        register_optimizer_step_post_hook(stepped)
        backward = torch.Tensor.backward

        def backward_seen(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            observer.loss = tensor.detach()
            if not self.loss_name and tensor.grad_fn is not None:
                self.loss_name = tensor.grad_fn.name()
            since = now()
            done = backward(tensor, *args, **kwargs)
            self.trend.add(now() - since, kwargs.get("retain_graph", False))
            observer.boundary("backward")
            return done

        torch.Tensor.backward = backward_seen
        observer.trains.append(self.has_optimizer)
        self.calls = ModelCalls(self)
        observer.barriers.append(self.barrier)
        observer.pending.append(self.computes)
        self.watch_loaders()
        compiler = "torch._dynamo.callback"
        if compiler in sys.modules:
            self.watch_compiler(sys.modules[compiler])
        AfterImport({compiler: self.watch_compiler})
        self.checks.watch()
        for name, value in self.process.switches.items():
            throw = SWITCHES.get(name)
            if throw is not None:
                throw(self, value)

    def has_optimizer(self) -> bool:
        made = self.torch.optim.Optimizer
        return any(issubclass(type(one), made) for one in gc.get_objects())

    def lead(self, optimizer: Any) -> None:
        """Its steps count: it is the first, made anew, or of the next model."""
        again = bool(self.optimizers) and (
            first_parameter(self.optimizers[0]) is first_parameter(optimizer)
        )
        if again:
            self.optimizers = [optimizer, *self.others_than(optimizer)]
        else:  # those of another model train no longer
            self.optimizers = [optimizer]
            self.capture()

    def others_than(self, optimizer: Any) -> list[Any]:
        """Optimizers of other parameters; of many, the last ones."""
        mine = first_parameter(optimizer)
        others = [o for o in self.optimizers if first_parameter(o) is not mine]
        return others[-_OPTIMIZERS:]

    def barrier(self) -> None:
        if self.torch.cuda.is_available() and self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()

    def computes(self) -> bool:
        cuda = self.torch.cuda
        return bool(cuda.is_initialized() and not cuda.current_stream().query())

    def watch_compiler(self, callback: Any, begun: int = 0, ended: int = 0) -> None:
        observer, handler, since = self.observer, callback.callback_handler, [0]

        def started(*args: Any) -> None:
            since[0] = now()

        def done(*args: Any) -> None:
            observer.compiles += 1
            observer.compiled(since[0], now())

        handler.register_start_callback(started)
        handler.register_end_callback(done)

    def watch_loaders(self) -> None:
        loaders = importlib.import_module("torch.utils.data.dataloader")
        observer, base = self.observer, loaders._BaseDataLoaderIter
        take, begin = base.__next__, loaders.DataLoader.__iter__

        def timed_next(iterator: Any) -> Any:
            since = now()
            try:
                batch = take(iterator)
            finally:
                observer.waited(since)
            if id(iterator._dataset) not in self.parts:
                self.parts[id(iterator._dataset)] = len(leaves(batch))
            return batch

        def timed_iter(loader: Any) -> Any:
            observer.epoch()
            if not any(loader is known for known in self.loaders):
                self.loaders.append(loader)
            since = now()
            try:
                return begin(loader)
            finally:
                observer.waited(since)

        self.loaders: list[Any] = []
        self.parts: dict[int, int] = {}  # tensors of a batch, by the data
        base.__next__ = timed_next
        loaders.DataLoader.__iter__ = timed_iter

    # ---- facts

    def models(self) -> list[Any]:
        """The modules that hold what the optimizers train and are part of no other."""
        nn = self.torch.nn
        trained = {
            id(p) for o in self.optimizers for g in o.param_groups for p in g["params"]
        }
        holders = [
            m
            for m in gc.get_objects()
            if issubclass(type(m), nn.Module)  # a proxy may be of what is gone
            and any(id(p) in trained for p in m.parameters())
        ]
        inner = {id(c) for m in holders for c in m.modules() if c is not m}
        return [m for m in holders if id(m) not in inner]

    def capture(self) -> None:
        """From the first step on: the model, and what its next call is given."""
        self.roots = self.models()
        if self.roots:
            self.capture_inputs(self.roots[0])
            self.checks.watch_cells(self.roots)

    def capture_inputs(self, root: Any) -> None:
        """Of the largest call of the next step: others may only act, or look."""
        steps = len(self.observer.marks) + self.observer.before
        most = -1

        def seen(module: Any, args: Any, kwargs: Any) -> None:
            nonlocal most
            now = len(self.observer.marks) + self.observer.before
            if self.inputs and now > steps + 1:
                handle.remove()
                return
            given = [x for x in [*args, *kwargs.values()] if self.torch.is_tensor(x)]
            rows = given[0].shape[0] if given and given[0].dim() else 0
            if rows > most:
                most = rows
                self.inputs = [_described(x) for x in given]
                self.padding = _padding(given)
                self.autocast = _autocast(self.torch)

        handle = root.register_forward_pre_hook(seen, with_kwargs=True)

    def profile(self) -> Optional[Profile]:
        # A profiler with a schedule may be off now, and wants to be the only one later.
        kinds = (
            self.torch.profiler.profile,
            self.torch.autograd.profiler.profile,
        )
        if any(issubclass(type(one), kinds) for one in gc.get_objects()):
            return None
        return TorchProfile(self.torch)

    def facts(self) -> Optional[Facts]:
        torch = self.torch
        seen = self.observer.marks or self.observer.stepless
        if not self.optimizers and not seen:
            return None
        if not self.optimizers and self.calls.model is not None:
            self.roots = [self.calls.model]
        found = Facts(
            threads=torch.get_num_threads(),
            interop_threads=torch.get_num_interop_threads(),
            autocast=self.autocast,
            anomaly=torch.is_anomaly_enabled(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
            default_dtype=str(torch.get_default_dtype()).removeprefix("torch."),
            matmul_precision=torch.get_float32_matmul_precision(),
            loss=self.loss_name,
            padding=self.padding,
            optimizers=[_optimizer(o) for o in self.optimizers],
            loaders=[self.loader(loader) for loader in self.loaders[:4]],
            graphs=0,
        )
        parameters = [
            p for o in self.optimizers for g in o.param_groups for p in g["params"]
        ]
        if not self.optimizers:
            parameters = self.calls.parameters()
            found.update(self.calls.facts())
        unique = {id(p): p for p in parameters}.values()
        found["parameters"] = sum(p.numel() for p in unique)
        found["parameter_tensors"] = len(unique)
        found["dtypes"] = sorted({str(p.dtype).removeprefix("torch.") for p in unique})
        found["device"] = str(next(iter(unique)).device) if unique else "cpu"
        if self.roots:
            root = self.roots[0]
            found["model"] = type(root).__name__
            found["modules"] = sum(1 for _ in root.modules())
            found["convolutions"] = sum(
                isinstance(m, torch.nn.modules.conv._ConvNd) for m in root.modules()
            )
            found["layout"] = _layout(torch, root)
            found["training"] = root.training
        if self.inputs:
            found["inputs"] = self.inputs
            shape = self.inputs[0]["shape"]
            found["batch"] = shape[0] if shape else 1
        found["denormals"] = self.denormals(unique)
        found.update(self.trend.facts())
        steps = self.observer.before + len(self.observer.marks)
        found.update(self.discarded.facts(steps))
        found.update(self.untrained())
        spent = self.observer.spent.get("optimizer", 0)
        found["optimizer_s"] = 1e-9 * spent / max(1, len(self.observer.marks))
        if self.roots:
            found.update(self.embedding(self.roots[0]))
        found.update(self.checks.facts(found["parameters"]))
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None:
            stats = dynamo.counters.get("stats", {})
            found["graphs"] = int(stats.get("unique_graphs", 0))
            found["graph_breaks"] = sum(dynamo.counters.get("graph_break", {}).values())
            found["recompiles"] = {
                code.co_name: sorted({_reason(text) for text in texts[-16:]})[:3]
                for code, texts in dict(getattr(dynamo, "guard_failures", {})).items()
            }
        return found

    def untrained(self) -> dict[str, Any]:
        """Parameters that backward passes give gradients, and nothing changes."""
        torch = self.torch
        alive = gc.get_objects()
        made = torch.optim.Optimizer
        optimizers = [one for one in alive if issubclass(type(one), made)]
        trained = {
            id(p) for o in optimizers for g in o.param_groups for p in g["params"]
        }
        kind = torch.nn.Parameter
        found = [
            p
            for p in alive
            if type(p) is kind and id(p) not in trained and p.grad is not None
        ]
        if not optimizers:  # then a script changes by hand what it trains
            before = self.sums
            self.sums = {id(p): sums_of(torch, p) for p in found}
            found = [p for p in found if before.get(id(p)) == self.sums[id(p)]]
        if not found:
            return {}
        numbers = sum(p.numel() for p in found)
        return {"untrained": {"tensors": len(found), "numbers": numbers}}

    def embedding(self, root: Any) -> dict[str, Any]:
        """The largest embedding with a dense gradient, and how much of that is used."""
        torch = self.torch
        found = [
            m
            for m in root.modules()
            if isinstance(m, torch.nn.Embedding)
            and m.weight.numel() >= _LARGE
            and m.weight.grad is not None
            and not m.weight.grad.is_sparse
        ]
        if not found:
            return {}
        weight = max(found, key=lambda m: m.weight.numel()).weight
        used = int((weight.grad != 0).any(dim=1).sum())
        told = {"rows": weight.shape[0], "used": used, "numbers": weight.numel()}
        return {"dense_embedding": told}

    def denormals(self, parameters: Any) -> float:
        """The largest share of denormal numbers in one parameter, gradient or state."""
        worst = 0.0
        values = [x for p in parameters for x in (p.detach(), p.grad) if x is not None]
        for optimizer in self.optimizers[:1]:
            for state in optimizer.state.values():
                values += [x for x in state.values() if self.torch.is_tensor(x)]
        for x in values:
            if x.is_floating_point() and x.numel() > 0 and not x.is_sparse:
                tiny = self.torch.finfo(x.dtype).tiny
                small = (x.abs() < tiny) & (x != 0)
                worst = max(worst, int(small.sum()) / x.numel())
        return worst

    def loader(self, loader: Any) -> dict[str, Any]:
        sampler = type(loader.sampler).__name__ if loader.batch_sampler else ""
        collate = loader.collate_fn
        return {
            "dataset": type(loader.dataset).__name__,
            "workers": loader.num_workers,
            "persistent": bool(loader.persistent_workers),
            "pinned": bool(loader.pin_memory),
            "batch": loader.batch_size,
            "sampler": sampler,
            "drop_last": bool(getattr(loader, "drop_last", False)),
            "default_collate": collate is self.torch.utils.data.default_collate,
            "parts": self.parts.get(id(loader.dataset), 0),
            "batched": hasattr(loader.dataset, "__getitems__"),
        }


def first_parameter(optimizer: Any) -> Any:
    for group in optimizer.param_groups:
        if group["params"]:
            return group["params"][0]
    return optimizer


def _reason(text: str) -> str:
    """Of a guard that failed: "L['n'] == 3", without numbers of compilations."""
    text = text.split("\n")[0].split("  # ")[0]
    return text.split(": ", 1)[-1].strip()[:100]


def _mapped(torch: Any, x: Any) -> int:
    """Over how many rows `torch.func.vmap` maps what takes this one."""
    functorch, rows = torch._C._functorch, 1
    while functorch.is_functorch_wrapped_tensor(x):
        inner = functorch.get_unwrapped(x)
        rows *= inner.numel() // max(1, x.numel())
        x = inner
    return rows


def _padding(given: list[Any]) -> float:
    """Of the first batch of whole numbers: the share of its last columns that hold
    one value in all rows."""
    for x in given:
        if x.dim() == 2 and not x.is_floating_point() and x.shape[1] > 1:
            same = (x == x[0, -1]).all(0).flip(0)
            return int(same.long().cumprod(0).sum()) / int(x.shape[1])
    return 0.0


def _described(tensor: Any) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }


def _optimizer(optimizer: Any) -> dict[str, Any]:
    """What it was made with: a scheduler changes the rate from step to step."""
    group = {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    if "lr" in group:
        made_with = optimizer.defaults.get("lr", group["lr"])
        group["lr"] = group.get("initial_lr", made_with)
    plain = {
        k: v if isinstance(v, (bool, int, float, str, type(None))) else str(v)
        for k, v in group.items()
    }
    return {"class": type(optimizer).__name__, **plain}


def _autocast(torch: Any) -> str:
    device = "cuda" if torch.is_autocast_enabled() else "cpu"
    if not torch.is_autocast_enabled(device):
        return ""
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.")


def _layout(torch: Any, root: Any) -> str:
    kernels = [p for p in root.parameters() if p.dim() == 4 and p.shape[1] > 1]
    if not kernels:
        return ""
    last = torch.channels_last
    turned = all(p.is_contiguous(memory_format=last) for p in kernels)
    return "channels_last" if turned else "contiguous"


# ---- switches: each changes one thing in the process before the script does


Throw = Callable[[TorchHooks, Any], None]


def _threads(hooks: TorchHooks, count: Any) -> None:
    torch = hooks.torch
    torch.set_num_threads(int(count))
    torch.set_num_threads = lambda asked: None
    hooks.process.threw("threads")


def _denormals(hooks: TorchHooks, on: Any) -> None:
    hooks.torch.set_flush_denormal(True)
    hooks.torch.set_flush_denormal = lambda mode: True
    hooks.process.threw("flush_denormals")


def _no_anomaly(hooks: TorchHooks, on: Any) -> None:
    autograd = hooks.torch.autograd
    inert = _asked(hooks, "no_anomaly")
    autograd.set_detect_anomaly = autograd.detect_anomaly = inert
    hooks.torch.set_anomaly_enabled = inert


def _asked(hooks: TorchHooks, switch: str) -> type[Inert]:
    """What does nothing where the script turns something on, and says so."""

    class Asked(Inert):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            on = next((x for x in args if isinstance(x, bool)), True)
            if kwargs.get("enabled", kwargs.get("mode", on)):
                hooks.process.threw(switch)

    return Asked


def _no_compile(hooks: TorchHooks, on: Any) -> None:
    nn = hooks.torch.nn

    def eager(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        hooks.process.threw("no_compile")
        return (lambda model: model) if model is None else model

    def stay(module: Any, *args: Any, **kwargs: Any) -> None:
        hooks.process.threw("no_compile")

    hooks.torch.compile = eager
    nn.Module.compile = stay


def _before_first_step(hooks: TorchHooks, act: Callable[[Any], None]) -> None:
    """`act` on the model of an optimizer, once one is made; without one, on the model
    that is called."""
    from torch.optim.optimizer import Optimizer

    make = Optimizer.__init__

    def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        make(optimizer, *args, **kwargs)
        hooks.calls.acts.clear()
        hooks.optimizers.append(optimizer)
        try:
            for root in hooks.models():
                act(root)
        finally:
            hooks.optimizers.pop()

    Optimizer.__init__ = made
    hooks.calls.acts.append(act)


def _compile(hooks: TorchHooks, mode: Any) -> None:
    done: list[int] = []

    def compiled(root: Any) -> None:
        if id(root) not in done and root._compiled_call_impl is None:
            done.append(id(root))
            root.compile()
            hooks.process.threw("compile")

    _before_first_step(hooks, compiled)


def _channels_last(hooks: TorchHooks, on: Any) -> None:
    def turned(root: Any) -> None:
        if _layout(hooks.torch, root) == "contiguous":
            root.to(memory_format=hooks.torch.channels_last)
            hooks.process.threw("channels_last")

    _before_first_step(hooks, turned)


def _fused(hooks: TorchHooks, on: Any) -> None:
    optim = hooks.torch.optim
    for name in ("Adam", "AdamW", "SGD", "Adagrad"):
        _fuse(hooks, getattr(optim, name))


def _fuse(hooks: TorchHooks, optimizer: Any) -> None:
    make = optimizer.__init__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("foreach") and not kwargs.get("fused"):
            kwargs["fused"] = True
            hooks.process.threw("fused")
        make(self, *args, **kwargs)

    optimizer.__init__ = made


def _loader_option(hooks: TorchHooks, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a DataLoader is made with."""
    loaders = importlib.import_module("torch.utils.data.dataloader")
    make = loaders.DataLoader.__init__
    names = make.__code__.co_varnames[1 : make.__code__.co_argcount]

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(names, args)) | kwargs
        change(given)
        make(self, **given)

    loaders.DataLoader.__init__ = made


def _workers(hooks: TorchHooks, count: Any) -> None:
    def change(given: dict[str, Any]) -> None:
        if given.get("num_workers", 0) == int(count):
            return
        given["num_workers"] = int(count)
        if int(count) == 0:
            for key in ("prefetch_factor", "persistent_workers", "timeout"):
                given.pop(key, None)
            given.pop("multiprocessing_context", None)
        else:
            given["persistent_workers"] = True
        hooks.process.threw("workers")

    _loader_option(hooks, change)


def _persistent(hooks: TorchHooks, on: Any) -> None:
    def change(given: dict[str, Any]) -> None:
        if given.get("num_workers", 0) > 0 and not given.get("persistent_workers"):
            given["persistent_workers"] = True
            hooks.process.threw("persistent_workers")

    _loader_option(hooks, change)


def _batch(hooks: TorchHooks, sizes: Any) -> None:
    """Loaders of batches of one size have another one."""
    before, after = int(sizes["from"]), int(sizes["to"])

    def change(given: dict[str, Any]) -> None:
        if given.get("batch_size") == before:
            given["batch_size"] = after
            hooks.process.threw("batch")

    _loader_option(hooks, change)


def _batched(hooks: TorchHooks, on: Any) -> None:
    """Rows of tensors in memory are taken with one index for a whole batch."""
    data = hooks.torch.utils.data
    fetch = importlib.import_module("torch.utils.data._utils.fetch")
    inner = fetch._MapDatasetFetcher.fetch
    torch = hooks.torch

    def whole(self: Any, places: Any) -> Any:
        dataset, rows = self.dataset, places
        while isinstance(dataset, data.Subset):
            rows = [dataset.indices[i] for i in rows]
            dataset = dataset.dataset
        plain = self.collate_fn is torch.utils.data.default_collate
        if self.auto_collation and plain and type(dataset) is data.TensorDataset:
            hooks.process.threw("batched_fetch")
            index = torch.as_tensor(rows)
            return [tensor[index] for tensor in dataset.tensors]
        return inner(self, places)

    fetch._MapDatasetFetcher.fetch = whole


def _cached_batch(hooks: TorchHooks, on: Any) -> None:
    """Every batch is the first one again: what a step takes without its input."""
    loaders = importlib.import_module("torch.utils.data.dataloader")
    base = loaders._BaseDataLoaderIter
    take = base.__next__
    first: dict[int, Any] = {}

    def again(iterator: Any) -> Any:
        key = id(iterator._dataset)
        if key not in first:
            first[key] = take(iterator)
        elif iterator._cached_left <= 0:
            raise StopIteration
        else:
            hooks.process.threw("cached_batch")
        iterator._cached_left -= 1
        return first[key]

    begin = base.__init__

    def begun(self: Any, loader: Any) -> None:
        begin(self, loader)
        try:
            self._cached_left = len(loader)
        except TypeError:
            self._cached_left = 1 << 60

    base.__init__ = begun
    base.__next__ = again


def _no_grad(hooks: TorchHooks, on: Any) -> None:
    """The model that is called keeps no graphs."""

    def act(root: Any) -> None:
        inner = root.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            with hooks.torch.no_grad():
                return inner(*args, **kwargs)

        root.forward = forward
        hooks.process.threw("no_grad")

    hooks.calls.acts.append(act)


def _no_autocast(hooks: TorchHooks, on: Any) -> None:
    inert = type("autocast", (_asked(hooks, "no_autocast"),), {})
    torch = hooks.torch
    torch.autocast = inert
    torch.amp.autocast = inert


def _use_autocast(hooks: TorchHooks, dtype: Any) -> None:
    """Forward passes of the model compute in this half precision."""
    torch = hooks.torch

    def act(root: Any) -> None:
        inner = root.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            device = next(root.parameters()).device.type
            hooks.process.threw("autocast")
            with torch.autocast(device, dtype=getattr(torch, dtype)):
                return inner(*args, **kwargs)

        if "forward" not in vars(root):
            root.forward = forward

    _before_first_step(hooks, act)


def _nondeterministic(hooks: TorchHooks, on: Any) -> None:
    torch = hooks.torch
    torch.use_deterministic_algorithms = _asked(hooks, "nondeterministic")


def _as_float32(
    hooks: TorchHooks, switch: str, names: tuple[str, ...], methods: tuple[str, ...]
) -> None:
    """Numbers that the script wants in one of these formats are float32."""
    torch = hooks.torch
    wrong = {getattr(torch, name) for name in names}

    def single(x: Any, *args: Any, **kwargs: Any) -> Any:
        hooks.process.threw(switch)
        return x.float()

    def default(dtype: Any) -> None:
        if dtype in wrong:
            hooks.process.threw(switch)

    def named(format: Any) -> Any:
        """As the user's own lines name it; PyTorch's own need it."""

        def get(module: Any) -> Any:
            if not is_own(sys._getframe(1).f_code.co_filename):
                return format
            hooks.process.threw(switch)
            return torch.float32

        return property(get)

    kind = type(torch)
    formats = {name: named(getattr(torch, name)) for name in names}
    torch.__class__ = type(kind.__name__, (kind,), formats)
    for name in names:
        del torch.__dict__[name]
    torch.set_default_dtype = default
    for name in methods:
        for owner in (torch.Tensor, torch.nn.Module):
            setattr(owner, name, single)
    for name in ("tensor", "as_tensor", "from_numpy"):
        make = getattr(torch, name)

        @functools.wraps(make)
        def made(*args: Any, _make: Any = make, **kwargs: Any) -> Any:
            x = _make(*args, **kwargs)
            return single(x) if x.dtype in wrong else x

        setattr(torch, name, made)


def _float32(hooks: TorchHooks, on: Any) -> None:
    _as_float32(hooks, "float32", ("float64", "double"), ("double",))


def _no_half(hooks: TorchHooks, on: Any) -> None:
    formats = ("float16", "half", "bfloat16")
    _as_float32(hooks, "no_half", formats, ("half", "bfloat16"))


SWITCHES: dict[str, Throw] = {
    "threads": _threads,
    "flush_denormals": _denormals,
    "no_anomaly": _no_anomaly,
    "no_compile": _no_compile,
    "compile": _compile,
    "channels_last": _channels_last,
    "fused": _fused,
    "workers": _workers,
    "persistent_workers": _persistent,
    "batched_fetch": _batched,
    "cached_batch": _cached_batch,
    "no_autocast": _no_autocast,
    "no_grad": _no_grad,
    "autocast": _use_autocast,
    "nondeterministic": _nondeterministic,
    "float32": _float32,
    "no_half": _no_half,
    "free_graph": throw_free_graph,
    "mkldnn": throw_mkldnn,
    "no_profiler": throw_no_profiler,
    "batch": _batch,
}


def install(module: ModuleType, process: Process) -> Hooks:
    hooks = TorchHooks(module, process)
    hooks.install()
    return hooks
