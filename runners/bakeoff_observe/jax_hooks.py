"""What is seen of a JAX script, and the switches that can be thrown in it.

A step ends with the outermost call of the compiled function that is given its own
former outputs, the parameters, again; in an eager loop with `optax.apply_updates`; in
one without optax with the function that `jax.grad` or `jax.value_and_grad` made.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import os
import sys
import time
from collections import Counter
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Optional

from bakeoff_observe.functions import Made, own_line
from bakeoff_observe.imports import AfterImport
from bakeoff_observe.jax_loops import EagerLoops
from bakeoff_observe.observer import Facts, Hooks
from bakeoff_observe.profiles import JaxProfile, Profile
from bakeoff_observe.values import (
    Inert,
    described,
    main_reasons,
    plain,
    processors,
    tiny_share,
)

if TYPE_CHECKING:
    from bakeoff_observe.process import Process

now = time.monotonic_ns
_EXAMINED = 8  # first calls of a function, in which it may show that it trains
_PATIENCE = 32  # calls of others without one of what trained so far
_NEW = "a new function each time"
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
_ANEW = 4  # compiled functions of one code, from which on they count as one
_AGAIN = 64  # from then on two calls in so many


# Of optax, by the names that other frameworks have for them.
OPTIMIZERS = {
    "adam": "Adam",
    "adamw": "AdamW",
    "nadam": "Nadam",
    "adamax": "Adamax",
    "adagrad": "Adagrad",
    "adadelta": "Adadelta",
    "adafactor": "Adafactor",
    "rmsprop": "RMSprop",
    "sgd": "SGD",
    "lion": "Lion",
    "lamb": "Lamb",
    "lars": "Lars",
}


class Compiled:
    """What is known of one compiled function, or of many that are made alike."""

    __slots__ = (
        *("calls", "function", "name", "outputs", "paths", "pick", "size"),
        *("compiles", "given", "reasons", "gradients", "total", "line"),
    )

    def __init__(self, function: Any) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", "function"))
        self.calls = 0
        self.total = 0  # calls in its own right, of all that are made alike
        self.line = 0  # of the user's file, that called it first
        self.size = 0  # numbers that it gets again; 0: it does not train
        self.outputs: list[Any] = []  # of the former call, while it is examined
        self.paths: list[Any] = []
        self.pick: Callable[[Any], Any] = lambda out: None
        self.compiles = 0  # calls that compiled it
        self.given: list[dict[str, Any]] = []  # what it was compiled for
        self.reasons: Counter[str] = Counter()  # to compile it again
        self.gradients = False  # it makes some, and the script updates by itself


class JaxHooks(Hooks):
    def __init__(self, jax: Any, process: Process) -> None:
        super().__init__("jax", str(jax.__version__))
        self.jax, self.process, self.observer = jax, process, process.observer
        self.clean = importlib.import_module("jax._src.core").trace_state_clean
        self.arrays = importlib.import_module("jax._src.array").ArrayImpl
        self.busy = False  # in an outermost call
        self.trainer: Optional[Compiled] = None
        self.leading: Optional[Compiled] = None  # of calls where nothing trains
        self.makes_gradients = False
        self.current: Optional[Compiled] = None  # whose call is under way
        self.seen: list[Compiled] = []
        self.alike: dict[Any, list[Compiled]] = {}  # by the code of functions
        self.others = 0
        self.outputs: Any = None  # of the last step
        self.batch: dict[int, Any] = {}  # of the first one, by places of its arguments
        self.parameters: list[Any] = []  # what is differentiated, shapes and dtypes
        self.carried: list[Any] = []
        self.inputs: list[dict[str, Any]] = []
        self.optimizers: list[dict[str, Any]] = []  # of optax

    def install(self) -> None:
        jax = self.jax
        self.block = jax.block_until_ready
        self.loops = EagerLoops(self)
        for name, value in self.process.switches.items():
            throw = SWITCHES.get(name)
            if throw is not None:
                throw(self, value)
        self.watch_jit(jax, "jit")
        self.watch_jit(jax, "pmap")
        self.watch_jit(importlib.import_module("jax.experimental.pjit"), "pjit")
        for name in ("scan", "fori_loop"):  # outside of any function: many steps in one
            setattr(jax.lax, name, self.watch(getattr(jax.lax, name)))
        for name in ("grad", "value_and_grad"):
            self.watch_grad(name)
        self.watch_reads()
        self.watch_blocks()
        jax.monitoring.register_event_duration_secs_listener(self.compiled)
        AfterImport({"optax": self.watch_optax})
        self.observer.barriers.append(self.barrier)
        self.observer.pending.append(self.computes)
        self.observer.trains.append(lambda: self.makes_gradients)

    def barrier(self) -> None:
        self.block(self.alive())

    def computes(self) -> bool:
        return not all(x.is_ready() for x in self.alive())

    def alive(self) -> list[Any]:
        """Arrays that the last step returned."""
        leaves = self.jax.tree_util.tree_leaves(self.outputs)
        return [x for x in leaves if self.is_array(x) and not x.is_deleted()]

    def is_array(self, x: Any) -> bool:
        return isinstance(x, self.arrays)

    def compiled(self, event: str, seconds: float, **kwargs: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            end = now()
            self.observer.compiled(end - int(1e9 * seconds), end)
            if event.endswith("backend_compile_duration"):
                self.observer.compiles += 1

    # ---- steps

    def watch_jit(self, place: Any, name: str) -> None:
        make, once = getattr(place, name), Made()
        reuses = "one_function" in self.process.switches

        @functools.wraps(make)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if reuses and args and callable(args[0]):
                options = args[1:], kwargs
                made, known = once.again(
                    args[0], options, lambda: self.watch(make(*args, **kwargs))
                )
                if known:
                    self.process.threw("one_function")
                return made
            made = make(*args, **kwargs)
            if hasattr(made, "lower"):
                return self.watch(made)
            if callable(made):  # a decorator
                return lambda function: self.watch(made(function))
            return made

        setattr(place, name, watched)

    def watch(self, jitted: Any) -> Any:
        """The same compiled function; a call of it may be a step."""
        observer, clean, seen = self.observer, self.clean, self.record(jitted)
        main, cached = observer.thread, "cached_batch" in self.process.switches

        @functools.wraps(jitted)
        def called(*args: Any, **kwargs: Any) -> Any:
            if self.busy or observer.inside or not clean() or get_ident() != main:
                return jitted(*args, **kwargs)
            seen.total += 1
            if seen.total == 1:
                seen.line = own_line(sys._getframe(1))
            if seen is not self.trainer:
                return self.examine(seen, jitted, args, kwargs)
            compiles = observer.compiles
            if cached:
                args, kwargs = self.first_batch(args, kwargs)
            self.busy = True
            try:
                out = jitted(*args, **kwargs)
            finally:
                self.busy = False
            if observer.compiles != compiles:
                self.explain(seen, args, kwargs)
            self.others = 0
            self.outputs = out
            observer.loss = seen.pick(out)
            observer.boundary("function")
            return out

        for name in dir(jitted):
            if not name.startswith("__") and not hasattr(called, name):
                setattr(called, name, getattr(jitted, name))
        if hasattr(jitted, "__wrapped__"):
            called.__wrapped__ = jitted.__wrapped__
        return called

    def first_batch(self, args: Any, kwargs: Any) -> Any:
        """The arrays that it does not get back from itself, as in the first step."""
        leaves, tree = self.jax.tree_util.tree_flatten((args, kwargs))
        returned = {id(x) for x in self.jax.tree_util.tree_leaves(self.outputs)}
        fresh = {
            i: x
            for i, x in enumerate(leaves)
            if hasattr(x, "dtype") and x.shape and id(x) not in returned
        }
        if not self.batch:
            self.batch = fresh
        elif fresh.keys() == self.batch.keys():
            for i, x in self.batch.items():
                if not (self.is_array(x) and x.is_deleted()):
                    leaves[i] = x
            self.process.threw("cached_batch")
        return self.jax.tree_util.tree_unflatten(tree, leaves)

    def record(self, jitted: Any) -> Compiled:
        """Its own, or that of the first one where the same code is compiled anew."""
        code = getattr(getattr(jitted, "__wrapped__", None), "__code__", jitted)
        alike = self.alike.setdefault(code, [])
        if len(alike) < _ANEW:
            alike.append(Compiled(jitted))
            if len(self.seen) < 64:
                self.seen.append(alike[-1])
            return alike[-1]
        alike[0].reasons[_NEW] += 1
        return alike[0]

    def explain(self, seen: Compiled, args: Any, kwargs: Any) -> None:
        """Why a call compiled the function: what differs from the call most alike."""
        seen.compiles += 1
        if len(seen.given) >= 8 or _NEW in seen.reasons:
            return
        try:
            given = _signature(self.jax, seen.function, args, kwargs)
        except Exception as error:  # a fact that cannot be had is no fact
            self.observer.notes.append(f"{seen.name}: {error!r}")
            return
        found = [_differences(before, given) for before in seen.given]
        seen.given.append(given)
        if found:
            sure, perhaps = min(found, key=lambda each: sum(map(len, each)))
            seen.reasons.update(sure or perhaps or {"placement"})

    def examine(self, seen: Compiled, jitted: Any, args: Any, kwargs: Any) -> Any:
        """A call of a function of which it is not known that it trains."""
        seen.calls += 1
        watched = seen.calls <= _EXAMINED or seen.calls % _AGAIN < 2
        if seen.size and not watched:
            self.others += 1
            watched = self.others > _PATIENCE
        if watched and seen.outputs:
            self.compare(seen, args, kwargs)
        compiles = self.observer.compiles
        self.busy, self.current = True, seen
        try:
            out = jitted(*args, **kwargs)
        finally:
            self.busy, self.current = False, None
        if self.observer.compiles != compiles:
            self.explain(seen, args, kwargs)
        if seen.gradients and seen is not self.trainer:
            self.outputs = out
            self.observer.boundary("backward")
        if seen is self.trainer:
            self.outputs = out
            self.observer.loss = seen.pick(out)
            self.observer.boundary("function")
        elif self.trainer is None and not self.makes_gradients:
            self.only_called(seen, args, kwargs, out)
        if seen is not self.trainer and watched:
            flat, _ = self.jax.tree_util.tree_flatten_with_path(out)
            seen.paths = [path for path, _ in flat]
            seen.outputs = [x for _, x in flat]
        elif seen is not self.trainer:
            seen.outputs = []
        return out

    def only_called(self, seen: Compiled, args: Any, kwargs: Any, out: Any) -> None:
        """Where nothing trains, calls of the function that is called first count."""
        if self.leading is None and seen.calls >= 3:
            self.leading = seen
            leaves = self.jax.tree_util.tree_leaves((args, kwargs))
            found = [described(x) for x in leaves if hasattr(x, "dtype") and x.shape]
            self.inputs = self.inputs or found
        if seen is self.leading:
            self.outputs = out
            self.observer.boundary("call")

    def compare(self, seen: Compiled, args: Any, kwargs: Any) -> None:
        """Whether the function is given what it returned."""
        leaves = self.jax.tree_util.tree_leaves((args, kwargs))
        given = {id(x) for x in leaves if self.is_array(x)}
        again = [x for x in seen.outputs if id(x) in given and _floating(x)]
        seen.size = sum(x.size for x in again if not x.is_deleted())
        if not seen.size or not self.leads(seen):
            return
        returned = {id(x) for x in seen.outputs}
        numbers = [
            (path, x)
            for path, x in zip(seen.paths, seen.outputs)
            if self.is_array(x)
            and x.shape == ()
            and _floating(x)
            and id(x) not in given
        ]
        seen.pick = _picker(numbers)
        self.carried = [(x.shape, str(x.dtype)) for x in again]
        fresh = [x for x in leaves if hasattr(x, "dtype") and id(x) not in returned]
        self.inputs = [described(x) for x in fresh if x.shape]
        # The first call was a step, which ends where the second begins.
        self.observer.loss = _loss(numbers)[1]
        self.observer.boundary("function")
        seen.outputs, seen.paths = [], []

    def leads(self, seen: Compiled) -> bool:
        """Of several the one that carries most; another when the first is gone."""
        first = self.trainer
        if first is not None and seen.size <= first.size:
            self.others += 1
            if seen.size < first.size or self.others < _PATIENCE:
                return False
        elif first is not None:
            self.observer.restart()
        self.trainer, self.others = seen, 0
        return True

    def watch_grad(self, name: str) -> None:
        make, observer, clean = getattr(self.jax, name), self.observer, self.clean
        leaves = self.jax.tree_util.tree_leaves

        @functools.wraps(make)
        def watched(function: Any, *args: Any, **kwargs: Any) -> Any:
            self.makes_gradients = True
            inner = make(function, *args, **kwargs)
            which = args[0] if args else kwargs.get("argnums", 0)
            which = which if isinstance(which, int) else which[0]

            same = name, id(function), repr((args, kwargs))  # as another one

            @functools.wraps(inner)
            def called(*args: Any, **kwargs: Any) -> Any:
                step = observer.tracing
                eager = not (step or self.busy or observer.inside) and clean()
                self.loops.check(args)
                if eager:
                    self.loops.enter()
                    out = self.loops.call(same, inner, *args, **kwargs)
                else:
                    out = inner(*args, **kwargs)
                if observer.inside:
                    return out
                if self.current is not None:
                    self.current.gradients = True
                if len(args) > which:
                    self.differentiated(leaves(args[which]))
                value = out[0] if name == "value_and_grad" else None
                value = value[0] if isinstance(value, tuple) else value
                if step is not None:
                    step.loss = value
                    step.end("backward")
                elif eager:
                    if value is not None:
                        observer.loss = value
                    self.outputs = out
                    observer.boundary("backward")
                return out

            return called

        setattr(self.jax, name, watched)

    def differentiated(self, arrays: list[Any]) -> None:
        found = [(x.shape, str(x.dtype)) for x in arrays if hasattr(x, "dtype")]
        if _count(found) > _count(self.parameters):
            self.parameters = found

    def watch_optax(self, optax: Any, begun: int, ended: int) -> None:
        for name, words in OPTIMIZERS.items():
            if hasattr(optax, name):
                setattr(optax, name, self.watch_optimizer(getattr(optax, name), words))
        apply, observer, clean = optax.apply_updates, self.observer, self.clean
        apply = self.loops.part(apply)

        @functools.wraps(apply)
        def applied(*args: Any, **kwargs: Any) -> Any:
            out = apply(*args, **kwargs)
            if observer.tracing is not None:
                observer.tracing.end("update")
            elif not (self.busy or observer.inside) and clean():
                self.outputs = out
                observer.boundary("update")
            return out

        optax.apply_updates = applied

    def watch_optimizer(self, make: Any, words: str) -> Any:
        signature = inspect.signature(make)

        @functools.wraps(make)
        def made(*args: Any, **kwargs: Any) -> Any:
            done = make(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            settings = {key: plain(value) for key, value in given.arguments.items()}
            rate = settings.pop("learning_rate", None)
            self.optimizers.append({"class": words, "lr": rate, **settings})
            if self.loops.throws and hasattr(done, "_replace"):
                return done._replace(update=self.loops.part(done.update))
            return done

        return made

    # ---- read-backs

    def watch_reads(self) -> None:
        observer = self.observer
        for name in ("__float__", "__int__", "__bool__", "__array__", "item", "tolist"):
            read = getattr(self.arrays, name)

            @functools.wraps(read)
            def counted(
                array: Any, *args: Any, _read: Any = read, **kwargs: Any
            ) -> Any:
                observer.count("reads")
                return _read(array, *args, **kwargs)

            setattr(self.arrays, name, counted)
        get = self.jax.device_get

        @functools.wraps(get)
        def got(x: Any) -> Any:
            before = observer.counts.get("reads", 0)
            done = get(x)
            observer.counts["reads"] = before + 1
            return done

        self.jax.device_get = got

    def watch_blocks(self) -> None:
        observer, skipped = self.observer, "no_block" in self.process.switches
        block, method = self.jax.block_until_ready, self.arrays.block_until_ready

        @functools.wraps(block)
        def blocked(x: Any) -> Any:
            if skipped:
                self.process.threw("no_block")
                return x
            before = observer.counts.get("blocks", 0)
            done = block(x)
            observer.counts["blocks"] = before + 1
            return done

        def ready(array: Any) -> Any:
            if skipped:
                self.process.threw("no_block")
                return array
            observer.count("blocks")
            return method(array)

        self.jax.block_until_ready, self.arrays.block_until_ready = blocked, ready
        self.block = block if not skipped else lambda x: [method(one) for one in x]

    # ---- facts

    def profile(self) -> Optional[Profile]:
        return JaxProfile(self.jax)

    def facts(self) -> Optional[Facts]:
        seen = self.observer.marks or self.observer.stepless
        if not seen and self.trainer is None:
            return None
        config = self.jax.config
        most = sorted(self.seen, key=lambda s: s.total)[-8:]
        found = Facts(
            x64=bool(config.jax_enable_x64),
            disable_jit=bool(config.jax_disable_jit),
            debug_nans=bool(config.jax_debug_nans or config.jax_debug_infs),
            matmul_precision=str(config.jax_default_matmul_precision or "default"),
            platform=str(self.jax.default_backend()),
            device=str(self.jax.default_backend()),
            blocks_per_step=self.observer.per_step("blocks"),
            reads_per_step=self.observer.per_step("reads"),
            versions=_versions(),
            recompiled=self.recompiled(),
            retraces={s.name: main_reasons(s.reasons) for s in self.seen if s.reasons},
            optimizers=self.optimizers[:8],
            functions={s.name: [s.total, s.line] for s in most},
            threads=_threads(),
            **self.loops.facts(),
        )
        if self.trainer is None and not self.parameters:
            return found
        parameters = self.parameters or self.carried
        found["parameters"] = _count(parameters)
        found["parameter_tensors"] = len(parameters)
        found["dtypes"] = sorted({dtype for _, dtype in parameters})
        if self.trainer is not None:
            found["function"] = self.trainer.name
            found["donates"] = self.donated()
            found["carried"] = self.trainer.size
        if self.inputs:
            found["inputs"], found["batch"] = self.inputs, self.inputs[0]["shape"][0]
        import numpy

        found["denormals"] = tiny_share(
            numpy.asarray(x) for x in self.alive() if _floating(x)
        )
        return found

    def donated(self) -> bool:
        info = getattr(self.trainer and self.trainer.function, "_jit_info", None)
        return bool(
            getattr(info, "donate_argnums", ()) or getattr(info, "donate_argnames", ())
        )

    def recompiled(self) -> dict[str, int]:
        """Functions that were compiled more than once, and how often."""
        return {s.name: s.compiles for s in self.seen if s.compiles > 1}


def _loss(numbers: list[Any]) -> Any:
    """Path and value of the first number that is named like a loss, or of the first."""
    named = [one for one in numbers if any("loss" in str(key) for key in one[0])]
    return (named or numbers or [((), None)])[0]


def _picker(numbers: list[Any]) -> Callable[[Any], Any]:
    steps: list[Callable[[Any], Any]] = []
    for key in _loss(numbers)[0]:
        if hasattr(key, "idx"):
            steps.append(operator.itemgetter(key.idx))
        elif hasattr(key, "name"):
            steps.append(operator.attrgetter(key.name))
        else:
            steps.append(operator.itemgetter(key.key))
    if not numbers:
        return lambda out: None

    def pick(out: Any) -> Any:
        try:
            for step in steps:
                out = step(out)
            return out
        except (KeyError, IndexError, TypeError, AttributeError):
            return None

    return pick


def _signature(jax: Any, function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Of each leaf of the arguments: shape, dtype and the weakness of its type."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {str(i): x for i, x in enumerate(args)} | kwargs
    found: dict[str, Any] = {}
    for name, value in bound.items():
        leaves, tree = jax.tree_util.tree_flatten(value)
        found[name] = [str(tree), [_leaf(x) for x in leaves]]
    return found


def _leaf(x: Any) -> tuple[Any, ...]:
    if not hasattr(x, "shape"):
        value = x if isinstance(x, (bool, int, float, str)) else id(x)
        return (type(x).__name__, value)
    weak = getattr(getattr(x, "aval", None), "weak_type", False)
    return tuple(x.shape), str(x.dtype), bool(weak)


def _differences(
    before: dict[str, Any], now: dict[str, Any]
) -> tuple[set[str], set[str]]:
    """Why what was compiled for `before` does not do now; and numbers that changed,
    which count where they are static arguments."""
    found, values = set(), set()
    for name in now:
        if name not in before or before[name][0] != now[name][0]:
            found.add(f"{name}: structure")
            continue
        for a, b in zip(before[name][1], now[name][1]):
            if a == b:
                continue
            if len(a) != len(b) or (len(a) == 2 and a[0] != b[0]):
                found.add(f"{name}: type")
            elif len(a) == 2:
                number = isinstance(a[1], (bool, float, str)) or a[0] == "int"
                values.add(f"{name}: {'Python value' if number else 'another object'}")
            elif a[0] != b[0]:
                found.add(f"{name}: shape")
            else:
                found.add(f"{name}: dtype" if a[1] != b[1] else f"{name}: weak type")
    return found, values


def _floating(x: Any) -> bool:
    return "float" in str(getattr(x, "dtype", ""))


def _count(arrays: list[Any]) -> int:
    total = 0
    for shape, _ in arrays:
        size = 1
        for n in shape:
            size *= int(n)
        total += size
    return total


def _threads() -> int:
    return 1 if _ONE_THREAD in os.environ.get("XLA_FLAGS", "") else processors()


def _versions() -> dict[str, str]:
    """Of the libraries over JAX that the script imported."""
    names = ("flax", "optax", "equinox", "haiku", "orbax", "grain")
    return {
        name: str(getattr(sys.modules[name], "__version__", "?"))
        for name in names
        if name in sys.modules
    }


# ---- switches: each changes one thing in the process before the script does


def _ignore(hooks: JaxHooks, switch: str, options: tuple[str, ...]) -> None:
    """These options of `jax.config` cannot be turned on."""
    config, update = hooks.jax.config, hooks.jax.config.update
    for option in options:
        if getattr(config, option, False):  # by the environment
            update(option, False)
            hooks.process.threw(switch)

    def kept(name: str, value: Any) -> None:
        if name in options and value:
            hooks.process.threw(switch)
        else:
            update(name, value)

    config.update = kept


def _inert(hooks: JaxHooks, switch: str, place: Any, name: str) -> None:
    """A context of `jax` that turns something on does nothing."""
    inner = getattr(place, name, None)
    if inner is None:
        return

    def context(on: Any = True) -> Any:
        if on:
            hooks.process.threw(switch)
            return Inert()
        return inner(on)

    setattr(place, name, context)


def _no_debug_nans(hooks: JaxHooks, on: Any) -> None:
    _ignore(hooks, "no_debug_nans", ("jax_debug_nans", "jax_debug_infs"))
    for name in ("debug_nans", "debug_infs"):
        _inert(hooks, "no_debug_nans", hooks.jax, name)


def _jit(hooks: JaxHooks, on: Any) -> None:
    _ignore(hooks, "jit", ("jax_disable_jit",))
    _inert(hooks, "jit", hooks.jax, "disable_jit")


def _no_x64(hooks: JaxHooks, on: Any, switch: str = "no_x64") -> None:
    _ignore(hooks, switch, ("jax_enable_x64",))
    experimental = importlib.import_module("jax.experimental")
    for place in (hooks.jax, experimental):
        _inert(hooks, switch, place, "enable_x64")


def _float32(hooks: JaxHooks, on: Any) -> None:
    """As the same remedy is called elsewhere."""
    _no_x64(hooks, on, "float32")


def _threads_on(hooks: JaxHooks, on: Any) -> None:
    """XLA reads its flags when the first array is made."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    kept = [flag for flag in flags if flag != _ONE_THREAD]
    if kept != flags:
        os.environ["XLA_FLAGS"] = " ".join(kept)
        hooks.process.threw("xla_threads")


SWITCHES: dict[str, Callable[[JaxHooks, Any], None]] = {
    "xla_threads": _threads_on,
    "no_debug_nans": _no_debug_nans,
    "jit": _jit,
    "no_x64": _no_x64,
    "float32": _float32,
}


def install(module: ModuleType, process: Process) -> Hooks:
    hooks = JaxHooks(module, process)
    hooks.install()
    return hooks
