"""What is seen of a TensorFlow script, and the switches that can be thrown in it.

A step ends with the outermost call of the `tf.function` that computes gradients; in an
eager loop without an optimizer of Keras, with `GradientTape.gradient`. Inside of a
graph nothing of Python runs, so neither steps nor waits can be seen there: functions
are watched from outside, and a pipeline that a graph reads is timed by itself once the
steps are over. A switch must change one thing only; where it would not (XLA over a
function that reads a pipeline) it is not thrown, and the cause stays unnamed.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import time
import weakref
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Optional

from bakeoff_observe.functions import Made, own_line
from bakeoff_observe.observer import Facts, Hooks
from bakeoff_observe.profiles import Profile, TensorFlowProfile
from bakeoff_observe.tensorflow_loops import EagerLoops, is_loss
from bakeoff_observe.values import (
    Leader,
    described,
    given,
    leaves,
    processors,
    scalar_finder,
    tiny_share,
)

if TYPE_CHECKING:
    from bakeoff_observe.process import Process

now = time.monotonic_ns
_ANEW = 4  # functions of one code, beyond which they count as one
_OURS = "_bakeoff_seen"  # what is known of a tf.function, in itself
_VARIES = object()
_READ, _READ_NS = 48, 1_000_000_000  # batches of a pipeline that is read by itself
_PYTHON = ("PyFunc", "EagerPyFunc", "PyFuncStateless")  # ops that call Python


class TensorFlowHooks(Hooks):
    def __init__(self, tensorflow: Any, process: Process) -> None:
        super().__init__("tensorflow", str(tensorflow.__version__))
        self.tf, self.process, self.observer = tensorflow, process, process.observer
        self.context = importlib.import_module("tensorflow.python.eager.context")
        self.leader = Leader()
        self.alike: dict[Any, list[Any]] = {}  # functions, by their code
        self.current: Optional[dict[str, Any]] = None  # the outermost function's
        self.functions: dict[str, weakref.ref[Any]] = {}
        self.sources: list[Any] = []  # of the last eager gradient
        self.inputs: list[dict[str, Any]] = []
        self.pipelines: list[dict[str, Any]] = []
        self.fitted: list[Any] = []  # datasets whose batches a graph reads
        self.generator_line = 0
        self.leading: Any = None  # the function that is called where nothing trains
        self.gradients = False
        self.tracing = False
        self.checks = False  # numbers of every op
        self.graph_ops = 0  # of the largest graph
        self.loops = EagerLoops(self)

    def install(self) -> None:
        self.observer.barriers.append(self.barrier)
        self.observer.trains.append(lambda: self.gradients)
        self.watch_functions()
        self.watch_traces()
        self.watch_gradients()
        self.loops.watch()
        self.watch_iterators()
        self.watch_reads()
        for name, value in self.process.switches.items():
            throw = SWITCHES.get(name)
            if throw is not None:
                throw(self, value)

    def barrier(self) -> None:
        self.context.async_wait()
        if self.tf.config.list_physical_devices("GPU"):
            self.tf.test.experimental.sync_devices()

    # ---- steps

    def watch_functions(self) -> None:
        package = "tensorflow.python.eager.polymorphic_function"
        module = importlib.import_module(f"{package}.polymorphic_function")
        self.function_class = module.Function
        concrete = importlib.import_module(f"{package}.concrete_function")
        self.watch_calls(module.Function)
        self.watch_calls(concrete.ConcreteFunction)
        get = module.Function.get_concrete_function

        @functools.wraps(get)
        def got(function: Any, *args: Any, **kwargs: Any) -> Any:
            if self.current is not None:
                return get(function, *args, **kwargs)
            self.current = function.__dict__.get(_OURS) or self.first_seen(function)
            try:
                found = get(function, *args, **kwargs)
            finally:
                seen, self.current = self.current, None
            found.__dict__.setdefault(_OURS, {**seen, "loss": None})
            return found

        module.Function.get_concrete_function = got

    def watch_calls(self, functions: Any) -> None:
        call, observer = functions.__call__, self.observer
        eager = self.context.executing_eagerly
        numbers = "tensor_values" in self.process.switches
        main = observer.thread

        @functools.wraps(call)
        def called(function: Any, *args: Any, **kwargs: Any) -> Any:
            if self.current is not None or observer.inside or not eager():
                return call(function, *args, **kwargs)
            if get_ident() != main:
                return call(function, *args, **kwargs)
            seen = function.__dict__.get(_OURS) or self.first_seen(function)
            if numbers:
                args, kwargs = self.tensor_values(seen, args, kwargs)
            self.current = seen
            before, since = observer.compile_ns, now()
            try:
                result = call(function, *args, **kwargs)
            finally:
                self.current = None
            # What was traced is optimized at its first run, of which this is most.
            if 2 * (observer.compile_ns - before) > now() - since:
                observer.compiled(since, now())
            if seen["trains"] and self.leader(self.one_of(function)):
                pick = seen["loss"] or self.first_step(seen, args, kwargs, result)
                observer.loss = pick(result)
                observer.boundary("function")
            elif observer.kind in ("", "call") and not self.gradients:
                if self.leading is None:
                    self.leading = function
                    self.first_step(seen, args, kwargs, result)
                    seen["loss"] = None
                if function is self.leading:
                    observer.boundary("call")
            return result

        functions.__call__ = called

    def one_of(self, function: Any) -> Any:
        """The first of many functions that were made of the same code."""
        code = getattr(getattr(function, "_python_function", None), "__code__", None)
        if code is None:
            return function
        alike = self.alike.setdefault(code, [])
        if len(alike) <= _ANEW and not any(function is one for one in alike):
            alike.append(function)
        return alike[0] if len(alike) > _ANEW else function

    def first_seen(self, function: Any) -> dict[str, Any]:
        seen: dict[str, Any] = {"trains": False, "loss": None}
        function.__dict__[_OURS] = seen
        if len(self.functions) < 64 and isinstance(function, self.function_class):
            name = _name(function)
            while name in self.functions and self.functions[name]() is not None:
                name += "'"
            self.functions[name] = weakref.ref(function)
        return seen

    def tensor_values(
        self,
        seen: dict[str, Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        switch: str = "tensor_values",
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Python numbers as tensors, once they have changed between two calls."""
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        before = seen.setdefault("numbers", {})
        for key, value in given.items():
            if type(value) not in (int, float):
                continue
            if before.setdefault(key, value) != value:
                before[key] = _VARIES
            if before[key] is _VARIES:
                given[key] = self.tf.constant(value)
                self.process.threw(switch)
        return tuple(given.pop(i) for i in range(len(args))), given

    def first_step(
        self, seen: dict[str, Any], args: Any, kwargs: Any, result: Any
    ) -> Callable[[Any], Any]:
        pick: Callable[[Any], Any] = scalar_finder(result, is_loss)
        seen["loss"] = pick
        self.inputs = []
        for one in [*leaves(list(args)), *leaves(kwargs)]:
            if isinstance(one, self.tf.data.Iterator):
                self.inputs += [described(x) for x in leaves(one.element_spec)]
            elif len(getattr(one, "shape", ())) and (  # a number is the step's setting
                isinstance(one, self.tf.Tensor) or hasattr(one, "__array_interface__")
            ):
                self.inputs.append(described(one))
        return pick

    def watch_traces(self) -> None:
        package = "tensorflow.python.eager.polymorphic_function"
        module = importlib.import_module(f"{package}.tracing_compilation")
        place: Any = module
        trace, observer = place._create_concrete_function, self.observer

        @functools.wraps(trace)
        def traced(*args: Any, **kwargs: Any) -> Any:
            if self.tracing:  # of a function that another one calls
                return trace(*args, **kwargs)
            self.tracing, since = True, now()
            try:
                made = trace(*args, **kwargs)
                self.graph_ops = max(self.graph_ops, len(made.graph.get_operations()))
                return made
            finally:
                self.tracing = False
                observer.compiles += 1
                observer.compiled(since, now())

        place._create_concrete_function = traced

    def watch_gradients(self) -> None:
        tape, observer = self.tf.GradientTape, self.observer
        take, eager = tape.gradient, self.context.executing_eagerly

        @functools.wraps(take)
        def gradient(
            self_: Any, target: Any, sources: Any, *args: Any, **kw: Any
        ) -> Any:
            self.gradients = True
            done = take(self_, target, sources, *args, **kw)
            step = observer.tracing
            if step is not None:
                step.loss = next((x for x in leaves(target) if is_loss(x)), None)
                step.end("backward")
                self.sources = sources
            elif self.current is not None:
                self.current["trains"] = True
                self.current["sources"] = leaves(sources)
            elif not observer.inside and eager():
                found = [x for x in leaves(target) if is_loss(x)]
                if found:
                    observer.loss = found[0]
                self.sources = sources
                observer.boundary("backward")
            return done

        tape.gradient = gradient

    def watch_reads(self) -> None:
        ops = importlib.import_module("tensorflow.python.framework.ops")
        tensors, observer = ops._EagerTensorBase, self.observer
        for name in ("numpy", "__float__", "__int__", "__bool__", "__array__"):
            read = getattr(tensors, name)

            @functools.wraps(read)
            def counted(x: Any, *args: Any, _read: Any = read, **kwargs: Any) -> Any:
                observer.count("reads")
                return _read(x, *args, **kwargs)

            setattr(tensors, name, counted)

    # ---- data

    def watch_iterators(self) -> None:
        ops = importlib.import_module("tensorflow.python.data.ops.iterator_ops")
        datasets = importlib.import_module("tensorflow.python.data.ops.dataset_ops")
        self.dataset_class = datasets.DatasetV2
        observer, eager = self.observer, self.context.executing_eagerly
        for name in ("__next__", "get_next"):
            self.time_next(ops.OwnedIterator, name)
        self.watch_generators()
        begin = self.dataset_class.__iter__

        @functools.wraps(begin)
        def begun(dataset: Any) -> Any:
            if not eager():
                return begin(dataset)
            known = any(dataset is one for one in self.fitted)
            if observer.inside and len(self.fitted) < 4 and not known:
                self.fitted.append(dataset)
            observer.epoch()
            self.opened(dataset)
            since = now()
            try:
                return begin(self.changed(dataset))
            finally:
                observer.waited(since)

        self.dataset_class.__iter__ = begun
        self.begin_dataset = begin

    def watch_generators(self) -> None:
        """Counts what Python generators give to pipelines, element by element."""
        make, observer = self.dataset_class.from_generator, self.observer

        @functools.wraps(make)
        def made(generator: Any, *args: Any, **kwargs: Any) -> Any:
            self.generator_line = self.generator_line or own_line(sys._getframe(1))

            @functools.wraps(generator)
            def counted(*given: Any, **named: Any) -> Any:
                for element in generator(*given, **named):
                    observer.count("elements")
                    yield element

            return make(counted if callable(generator) else generator, *args, **kwargs)

        self.dataset_class.from_generator = staticmethod(made)

    def time_next(self, iterators: Any, name: str) -> None:
        take, observer = getattr(iterators, name), self.observer
        eager = self.context.executing_eagerly

        @functools.wraps(take)
        def timed(iterator: Any) -> Any:
            if not eager():
                return take(iterator)
            since = now()
            try:
                return take(iterator)
            finally:
                observer.waited(since)

        setattr(iterators, name, timed)

    def opened(self, dataset: Any) -> None:
        """Facts of the first pipelines that the script reads in Python."""
        if len(self.pipelines) >= 8:
            return
        try:
            found = pipeline(dataset)
        except Exception as error:  # a fact that cannot be had is no fact
            self.observer.notes.append(f"tf.data: {error!r}")
            return
        if found not in self.pipelines:
            self.pipelines.append(found)

    def changed(self, dataset: Any) -> Any:
        """What is read in the dataset's place."""
        switches = self.process.switches
        if "cached_batch" in switches:
            return self.first_batch(dataset)
        if "prefetch" in switches and stages(dataset)[-1:] != ["prefetch"]:
            self.process.threw("prefetch")
            return self.derived(
                dataset, lambda: dataset.prefetch(self.tf.data.AUTOTUNE)
            )
        return dataset

    def derived(self, dataset: Any, make: Callable[[], Any]) -> Any:
        """One for each dataset, made at its first epoch."""
        made = dataset.__dict__.get(_OURS)
        if made is None:
            made = dataset.__dict__[_OURS] = make()
            made.__dict__[_OURS] = made
        return made

    def first_batch(self, dataset: Any) -> Any:
        """The dataset's first batch, as often as it has batches."""

        def make() -> Any:
            count = int(dataset.cardinality())
            if count == 0:
                return dataset
            dataset.__dict__[_OURS] = dataset  # so that this reads the dataset itself
            first = next(iter(dataset))
            self.process.threw("cached_batch")
            data = self.tf.data.Dataset.from_tensors(first).cache()
            return data.repeat(count if count > 0 else None)

        return self.derived(dataset, make)

    def input_seconds(self) -> float:
        """What a batch takes of the pipelines that `fit` reads within a graph, where
        nobody sees it wait: read by themselves, once no step is made any more."""
        most = 0.0
        for dataset in self.fitted:
            batches = self.begin_dataset(dataset)
            for _ in range(2):  # shuffle buffers, threads
                if next(batches, None) is None:
                    break
            since, count = now(), 0
            while count < _READ and now() - since < _READ_NS:
                if next(batches, None) is None:
                    break
                count += 1
            if count >= 2:
                most = max(most, 1e-9 * (now() - since) / count)
        return most

    # ---- facts

    def profile(self) -> Optional[Profile]:
        return TensorFlowProfile(self.tf)

    def facts(self) -> Optional[Facts]:
        tf = self.tf
        if not self.observer.marks and not self.functions and not self.pipelines:
            return None
        threading = tf.config.threading
        found = Facts(
            threads=threading.get_intra_op_parallelism_threads() or processors(),
            interop_threads=threading.get_inter_op_parallelism_threads(),
            run_eagerly=bool(tf.config.functions_run_eagerly()),
            check_numerics=self.checks,
            deterministic=self.deterministic(),
            tf32=bool(tf.config.experimental.tensor_float_32_execution_enabled()),
            reads_per_step=self.observer.per_step("reads"),
            pipelines=self.pipelines,
            generator_elements_per_step=self.observer.per_step("elements"),
            lines={"from_generator": self.generator_line},
            retraces=self.retraces(),
            graph_ops=self.graph_ops,
            **self.loops.facts(),
        )
        function = self.leader.key or self.leading
        if function is not None:
            found["function"] = _name(function)
            found["jit_compile"] = bool(getattr(function, "_jit_compile", False))
            relaxed = getattr(function, "_reduce_retracing", False)
            found["reduce_retracing"] = bool(relaxed)
            found["inputs"] = self.inputs
            sizes = [one["shape"][0] for one in self.inputs if one["shape"]]
            if sizes:
                found["batch"] = sizes[0]
        read = [one["batch"] for one in self.pipelines if one["batch"]]
        if "batch" not in found and len(set(read)) == 1:  # a step takes a batch
            found["batch"] = read[0]
        for hooks in self.process.hooks:
            traced = getattr(hooks, "traced", [])  # optimizers of Keras
            if traced:
                found["optimizers"] = [hooks.optimizer(o) for o in traced]  # type: ignore[attr-defined]
        variables = self.trained()
        if variables:
            found["parameters"] = sum(int(v.shape.num_elements()) for v in variables)
            found["parameter_tensors"] = len(variables)
            found["dtypes"] = sorted({described(v)["dtype"] for v in variables})
            where = str(variables[0].device).rsplit("device:", 1)[-1]
            found["device"] = where.split(":")[0].lower() or "cpu"
            found["denormals"] = tiny_share([v.numpy() for v in variables])
        return found

    def deterministic(self) -> bool:
        config = importlib.import_module("tensorflow.python.framework.config")
        return bool(config.is_op_determinism_enabled())

    def trained(self) -> list[Any]:
        if self.leader.key is not None:
            key = self.leader.key
            known = key.__dict__.get(_OURS, {}).get("sources", [])
            taken = {id(v): v for v in known if isinstance(v, self.tf.Variable)}
            if taken:  # those that it differentiates, and no state of its optimizer
                return list(taken.values())
            listed = getattr(key, "_list_all_concrete_functions", lambda: [key])()
            if listed:
                return list(listed[-1].graph.trainable_variables)
        unique = {id(v): v for v in leaves(self.sources)}
        return [v for v in unique.values() if isinstance(v, self.tf.Variable)]

    def retraces(self) -> dict[str, Any]:
        """Functions that were traced more than once, and why."""
        found = {}
        for name, ref in self.functions.items():
            function = ref()
            if function is None or self.tf.config.functions_run_eagerly():
                continue
            code = getattr(function._python_function, "__code__", None)
            if len(self.alike.get(code, [])) > _ANEW:
                found[name] = {"traces": _ANEW, "reasons": ["a new function each time"]}
                continue
            traces = int(function.experimental_get_tracing_count())
            if traces > 1:
                found[name] = {"traces": traces, "reasons": _reasons(function)}
        return found


def _name(function: Any) -> str:
    return str(getattr(function, "_name", None) or getattr(function, "name", ""))


def _reasons(function: Any) -> list[str]:
    """In what the types of a function's traces differ."""
    types = [
        {
            name: repr(p.type_constraint)
            for name, p in c.function_type.parameters.items()
        }
        for c in function._list_all_concrete_functions()
    ]
    found = set()
    for before, after in zip(types, types[1:]):
        for name in before.keys() & after.keys():
            a, b = before[name], after[name]
            if a == b:
                continue
            a, b = (re.sub(r"Literal\[[^]]*\]", "", t) for t in (a, b))
            if a == b:
                found.add(f"{name}: Python value")
                continue
            a, b = (re.sub(r"shape=(\([^)]*\)|None)", "", t) for t in (a, b))
            found.add(f"{name}: shape" if a == b else f"{name}: type")
    return sorted(found)


def stages(dataset: Any) -> list[str]:
    """Of a pipeline, from its source on; options are none."""
    found: list[str] = []
    while dataset is not None:
        name = type(dataset).__name__.strip("_").removesuffix("V2").removesuffix("V1")
        name = re.sub(r"Dataset(Op)?$", "", name)
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        if name not in ("options", "model", "max_intra_op_parallelism"):
            found.append(name)
        inputs = dataset._inputs()
        dataset = inputs[0] if inputs else None
    found.reverse()
    if found[:2] == ["tensor", "flat_map"]:  # of which from_generator consists
        found[:2] = ["generator"]
    return found


def calls_python(dataset: Any) -> bool:
    """Whether a map of the pipeline calls a function of Python's."""
    at = dataset
    while at is not None:
        function = getattr(getattr(at, "_map_func", None), "function", None)
        graph = getattr(function, "graph", None)
        if graph and any(op.type in _PYTHON for op in graph.get_operations()):
            return True
        inputs = at._inputs()
        at = inputs[0] if inputs else None
    return False


def pipeline(dataset: Any) -> dict[str, Any]:
    names = stages(dataset)
    batch, at = None, dataset
    while at is not None and batch is None:
        size = getattr(at, "_batch_size", None)
        batch = None if size is None else int(size)
        inputs = at._inputs()
        at = inputs[0] if inputs else None
    return {
        "stages": names,
        "prefetch": names[-1:] == ["prefetch"],
        "cache": "cache" in names,
        "map": "map" in names,
        "parallel_map": "parallel_map" in names,
        "shuffle": "shuffle" in names,
        "python": calls_python(dataset),
        "batch": batch,
        "inputs": [
            described(x) for x in leaves(dataset.element_spec) if hasattr(x, "dtype")
        ],
    }


# ---- switches: each changes one thing in the process before the script does


def _no_eager(hooks: TensorFlowHooks, on: Any) -> None:
    config = hooks.tf.config

    def ignored(on: bool) -> None:
        if on:
            hooks.process.threw("no_eager")

    config.run_functions_eagerly = ignored
    config.experimental_run_functions_eagerly = ignored

    def debug() -> None:
        hooks.process.threw("no_eager")

    hooks.tf.data.experimental.enable_debug_mode = debug


def _threads(hooks: TensorFlowHooks, count: Any) -> None:
    threading = hooks.tf.config.threading
    for word in ("intra", "inter"):
        name = f"set_{word}_op_parallelism_threads"
        getattr(threading, name)(int(count))
        setattr(threading, name, lambda asked: None)
    hooks.process.threw("threads")


def _own(function: Any) -> bool:
    """Of the script, and not of a framework."""
    module = str(getattr(function, "__module__", ""))
    return module.split(".")[0] not in ("tensorflow", "keras", "tf_keras")


def _relax_shapes(hooks: TensorFlowHooks, on: Any) -> None:
    make = hooks.function_class.__init__

    @functools.wraps(make)
    def made(function: Any, *args: Any, **kwargs: Any) -> None:
        make(function, *args, **kwargs)
        if not function._reduce_retracing and _own(function._python_function):
            function._reduce_retracing = True
            hooks.process.threw("relax_shapes")

    hooks.function_class.__init__ = made


def _xla(hooks: TensorFlowHooks, on: Any) -> None:
    """Not where a function reads a pipeline, which XLA cannot."""
    first_seen, tf = hooks.first_seen, hooks.tf

    def compiled(function: Any) -> dict[str, Any]:
        seen = first_seen(function)
        if not isinstance(function, hooks.function_class):
            return seen
        call = function._call

        def once(*args: Any, **kwargs: Any) -> Any:
            given = [*leaves(list(args)), *leaves(kwargs)]
            reads = any(
                isinstance(x, (tf.data.Iterator, tf.data.Dataset)) for x in given
            )
            if (
                not reads
                and function._jit_compile is None
                and _own(function._python_function)
            ):
                function._jit_compile = True
                hooks.process.threw("xla")
            del function._call
            return call(*args, **kwargs)

        function._call = once
        return seen

    hooks.first_seen = compiled  # type: ignore[method-assign]


def _no_check_numerics(hooks: TensorFlowHooks, on: Any) -> None:
    debugging = hooks.tf.debugging

    def enable(*args: Any, **kwargs: Any) -> None:
        hooks.process.threw("no_check_numerics")

    def unchecked(x: Any, *args: Any, **kwargs: Any) -> Any:
        hooks.process.threw("no_check_numerics")
        return hooks.tf.convert_to_tensor(x)

    debugging.enable_check_numerics = enable
    debugging.check_numerics = debugging.assert_all_finite = unchecked


def _parallel_map(hooks: TensorFlowHooks, on: Any) -> None:
    """Maps that the script leaves serial, element after element, are parallel."""
    data, tune = hooks.dataset_class, hooks.tf.data.AUTOTUNE
    inner = data.map

    @functools.wraps(inner)
    def mapped(dataset: Any, *args: Any, **kwargs: Any) -> Any:
        asked = given(inner, args, kwargs)
        if asked is None or asked.get("num_parallel_calls") is not None:
            return inner(dataset, *args, **kwargs)
        function = asked.get("map_func")
        if _own(function):
            asked["num_parallel_calls"] = tune
            hooks.process.threw("parallel_map")
        return inner(dataset, **asked)

    data.map = mapped


def _batch(hooks: TensorFlowHooks, sizes: Any) -> None:
    """Pipelines of batches of one size have another one."""
    data = hooks.dataset_class
    inner = data.batch

    @functools.wraps(inner)
    def batched(dataset: Any, *args: Any, **kwargs: Any) -> Any:
        asked = given(inner, args, kwargs)
        if asked is None or asked.get("batch_size") != int(sizes["from"]):
            return inner(dataset, *args, **kwargs)
        asked["batch_size"] = int(sizes["to"])
        hooks.process.threw("batch")
        return inner(dataset, **asked)

    data.batch = batched


def _float32(hooks: TensorFlowHooks, on: Any) -> None:
    """`tf.float64` is float32 for the script, as are NumPy's arrays without a dtype.

    What names the dtype by a string, or of NumPy, stays float64.
    """
    import numpy

    tf = hooks.tf
    tf.float64 = tf.double = tf.float32
    constants = importlib.import_module("tensorflow.python.framework.constant_op")
    convert = constants.convert_to_eager_tensor

    @functools.wraps(convert)
    def converted(value: Any, ctx: Any, dtype: Any = None) -> Any:
        if dtype is None and getattr(value, "dtype", None) == numpy.float64:
            hooks.process.threw("float32")
            value = numpy.asarray(value, numpy.float32)
        return convert(value, ctx, dtype)

    constants.convert_to_eager_tensor = converted  # type: ignore[attr-defined]

    def single(x: Any) -> Any:
        if getattr(x, "dtype", None) != numpy.float64:
            return x
        hooks.process.threw("float32")
        return tf.cast(x, tf.float32) if tf.is_tensor(x) else x.astype(numpy.float32)

    for name in ("from_tensor_slices", "from_tensors"):
        make = getattr(hooks.dataset_class, name)

        @functools.wraps(make)
        def made(tensors: Any, *args: Any, _make: Any = make, **kwargs: Any) -> Any:
            return _make(tf.nest.map_structure(single, tensors), *args, **kwargs)

        setattr(hooks.dataset_class, name, staticmethod(made))


def _one_function(hooks: TensorFlowHooks, on: Any) -> None:
    tf, once = hooks.tf, Made()
    make = tf.function

    @functools.wraps(make)
    def function(func: Any = None, *args: Any, **kwargs: Any) -> Any:
        if func is None:
            return lambda func: function(func, *args, **kwargs)
        made, known = once.again(
            func, (args, kwargs), lambda: make(func, *args, **kwargs)
        )
        if known:
            hooks.process.threw("one_function")
        return made

    tf.function = function


SWITCHES: dict[str, Callable[[TensorFlowHooks, Any], None]] = {
    "one_function": _one_function,
    "float32": _float32,
    "parallel_map": _parallel_map,
    "batch": _batch,
    "no_eager": _no_eager,
    "threads": _threads,
    "relax_shapes": _relax_shapes,
    "xla": _xla,
    "no_check_numerics": _no_check_numerics,
}


def _watch_checks(hooks: TensorFlowHooks) -> None:
    debugging = hooks.tf.debugging
    for name, on in (
        ("enable_check_numerics", True),
        ("disable_check_numerics", False),
    ):
        inner = getattr(debugging, name)

        @functools.wraps(inner)
        def watched(
            *args: Any, _inner: Any = inner, _on: bool = on, **kwargs: Any
        ) -> Any:
            hooks.checks = _on
            return _inner(*args, **kwargs)

        setattr(debugging, name, watched)


def install(module: ModuleType, process: Process) -> Hooks:
    hooks = TensorFlowHooks(module, process)
    _watch_checks(hooks)
    hooks.install()
    return hooks
