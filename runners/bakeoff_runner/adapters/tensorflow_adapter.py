"""TensorFlow without Keras.

What a script has to offer, generated or edited by its user:

- one ``tf.Module`` class with ``__call__(*inputs)``, the model, made from
  ``weights`` (a dict of arrays) or without arguments; ``make_model`` may stand in;
- one ``tf.Module`` class with ``apply_gradients(gradients)``, made from the model's
  trainable variables, which it keeps in ``targets``; ``make_optimizer(model)`` may
  stand in;
- ``train_step(model, optimizer, *batch) -> loss``, which calls the model and
  ``optimizer.apply_gradients`` once: op by op, or a ``tf.function``;
- where it has one, ``compiled(function, *modules)``: what the loop then calls with
  batches alone, as ``compiled(train_step, model, optimizer)``;
- ``load_data(path)``: numpy arrays, rows first, in the order of train_step's last
  arguments, by whose names the model is called;
- ``batches(arrays)``: an endless iterator of tuples for ``train_step``;
- or, beside them, ``STEPS_PER_CALL`` and ``train_steps``, which takes what ``batches``
  then yields, runs so many steps in one call and returns their losses;
- or, to predict, ``predict_step(model, *inputs) -> output`` in place of optimizer and
  training step;
- to train on several devices, ``STRATEGY``, under whose scope variables are made, and
  ``batches`` that gives values of which each replica has its own rows;
- rates of dropout in module constants ``DROPOUT...`` or in calls of
  ``tf.nn.dropout``.

Variables are attributes of the model, found under the layout file's targets (dotted
where they belong to a submodule). In the parity proof the body of ``train_step`` runs
eagerly; `losses` and `run` call what the loop calls.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import time
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    Peak,
    RunResult,
    Transfer,
)
from bakeoff_runner.adapters.arrays_adapter import ArraysAdapter
from bakeoff_runner.adapters.silence import SILENT, silent_tensorflow
from bakeoff_runner.adapters.tensorflow_shared import (
    probe_tensorflow,
    set_ctc_loss,
    tensorflow_arrays,
    tensorflow_compilations,
    tensorflow_device,
    tensorflow_peak,
)
from bakeoff_runner.calls import losses_of
from bakeoff_runner.generation import (
    GENERATION_NAMES,
    prove_generation,
    word_request,
)
from bakeoff_runner.layout import (
    LayoutEntry,
    to_canonical,
    to_framework,
)
from bakeoff_runner.prediction import (
    PREDICTION_NAMES,
    joined,
    predict_burst,
    predict_request,
)
from bakeoff_runner.probe import Probe
from bakeoff_runner.script import (
    check_devices,
    check_options,
    check_rows,
)
from bakeoff_runner.tensors import read_safetensors
from bakeoff_runner.transfers import time_batch, time_data

_SCRIPT_NAMES = {
    **PREDICTION_NAMES,
    "load_data": "load_data(path)",
    "batches": "batches(arrays)",
    "train_step": "train_step(model, optimizer, *batch)",
    "train_steps": "train_steps(model, optimizer, *batches)",
}
_OPTIONS = {
    "mode",
    "jit_compile",
    "steps_per_call",
    "devices",
    "processes",
    "input",
    "loops",
    "cache",
    "precision",
    "tf32",
}


class TensorFlowAdapter(ArraysAdapter):
    """One build at a time; its initial state is kept so that it can be restored."""

    def __init__(self) -> None:
        super().__init__()
        self._model: Any = None
        self._optimizer: Any = None
        self._initial: list[tuple[Any, Array]] = []
        self._dropout: Any = None
        self._predicts = False
        self._generates = False
        self._devices = 1  # that the contender is to train on
        self._local = 1  # of these, in this process
        self._step: Callable[..., Any] = _nothing  # of a batch: what is timed
        self._trained: dict[str, Any] = {}  # canonical name -> variable
        self._sums: Any = None  # compiled: the sum of every one of them

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        check_options(options, _OPTIONS, "tensorflow")
        self._devices = int(options.get("devices", "1"))
        self._local = self._devices // int(options.get("processes", "1"))
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import numpy
        import tensorflow as tf

        if self._devices > 1:
            _keep_strategies("MirroredStrategy")
            _keep_strategies("MultiWorkerMirroredStrategy")
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        gpus = tf.config.list_physical_devices("GPU")
        build = tf.sysconfig.get_build_info()
        effective: dict[str, Any] = {
            "threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
            "cuda_build": bool(build.get("is_cuda_build", False)),
        }
        if gpus:
            details = tf.config.experimental.get_device_details(gpus[0])
            effective["gpu"] = details.get("device_name", gpus[0].name)
        versions = {"tensorflow": tf.__version__, "numpy": numpy.__version__}
        return ImportInfo(versions, "cuda:0" if gpus else "cpu", effective)

    def build(self, request: BuildRequest) -> dict[str, Any]:
        self._drop()
        self._dtype = request.dtype
        set_ctc_loss(request.dtype)
        self._load_script(request)
        self._predicts, self._generates = request.predict, request.generate
        step = "predict_step" if request.predict else "train_step"
        self._require(_SCRIPT_NAMES, "load_data", "batches", step)
        if request.generate:
            self._require(GENERATION_NAMES)
        if not request.predict:
            self._require(_SCRIPT_NAMES, self._calls().name)
        if not request.dropout:
            self._no_dropout()
        self._data = self._arrays(request, "tensorflow", self._dtype)
        with self._scope():
            self._make_model(request)
            if request.train:
                self._make_optimizer()
        if not request.predict:
            self._check_devices()
        modules = [(self._model, self._optimizer)]
        if SILENT and self._devices > 1:
            modules = self._apart(request)
            script, function = self._the_script(), self._calls().function
            self._step = script.compiled(silent_tensorflow(script, function, modules))
        else:
            self._step = self._compiled()
        owners = [owner for pair in modules for owner in pair if owner is not None]
        kept = (v for owner in owners for _, _, v in _variables(owner).values())
        unique = {id(v): v for v in kept}
        self._initial = [(v, v.numpy().copy()) for v in unique.values()]
        variables = {name: self._variable(name) for name in self._names}
        self._trained = {n: v for n, v in variables.items() if v.trainable}
        return self._effective()

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        batch = self._rows(request.first, request.count)
        if self._generates:
            script, model = self._the_script(), self._model
            return prove_generation(script, model, batch[0], lambda t: t.numpy())
        if self._predicts:
            found = self._layers(batch) if request.activations else {}
            return {"output": self._prediction(batch), **found}
        self._reset()
        tensors: dict[str, Array] = {}
        if request.activations and self._strategy() is None:
            tensors = self._layers(batch)
            self._reset()
        tensors.update(self._one_step(batch))
        for name in self._names:
            if not self._variable(name).trainable:
                tensors[f"buffer/{name}"] = self._canonical(name, self._variable(name))
        self._reset()
        if request.grads_in is not None:
            tensors.update(self._update(read_safetensors(request.grads_in)))
            self._reset()
        return tensors

    def losses(self, steps: int) -> LossesResult:
        self._need_optimizer()
        self._reset()
        calls, batches, step = self._calls(), self._stream(), self._step
        kept = []
        start = time.monotonic_ns()
        kept.append(step(*next(batches)))
        self._barrier(kept[-1])
        first = time.monotonic_ns()
        for _ in range(calls.count(steps) - 1):
            kept.append(step(*next(batches)))
        self._barrier(kept[-1])
        end = time.monotonic_ns()
        losses = [float(x) for loss in kept for x in losses_of(loss)]
        return LossesResult(losses[:steps], first - start, end - start)

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        if self._predicts:
            return predict_burst(
                self._step,
                self._stream(),
                steps,
                mark,
                _wait_for,
                tensorflow_arrays(),
            )
        self._need_optimizer()
        calls, batches, step = self._calls(), self._stream(), self._step
        count = calls.count(steps)
        batches.take()
        kept = []
        start = time.monotonic_ns()
        for _ in range(count):
            kept.append(step(*next(batches)))
            mark()
        self._barrier(kept[-1])
        end = time.monotonic_ns()
        losses = [x for loss in kept for x in losses_of(loss).tolist()]
        return RunResult(
            end - start,
            losses[-1],
            count * calls.steps,
            batches.take(),
            losses=losses,
            sums=self._sums_now(),
        )

    def _sums_now(self) -> dict[str, float]:
        import tensorflow as tf

        if not self._trained:
            return {}
        if self._sums is None:  # one call for all of them
            variables = list(self._trained.values())
            self._sums = tf.function(
                lambda: tf.stack([tf.reduce_sum(v) for v in variables])
            )
        return dict(zip(self._trained, self._sums().numpy().tolist()))

    def restore(self) -> None:
        for variable, value in self._initial:
            variable.assign(value)
        self._barrier(None)

    def nudge(self, changes: Mapping[str, Array]) -> None:
        for name, array in changes.items():
            variable = self._trained.get(name)
            if variable is None:
                raise AdapterError(f"the model of {self._file()} trains no '{name}'")
            change = to_framework(array, self._names[name][0])
            variable.assign_add(change.astype(variable.dtype.name))

    def state(self) -> dict[str, Array]:
        variables = {name: self._variable(name) for name in self._names}
        tensors = {name: self._canonical(name, v) for name, v in variables.items()}
        averages = getattr(self._optimizer, "averages", None)
        if averages is not None:
            by_id = {id(v): average for v, average in zip(self._targets(), averages)}
            for name, variable in self._trained.items():
                average = by_id[id(variable)]
                tensors[f"ema/{name}"] = self._canonical(name, average)
        return tensors

    def rates(self, steps: Sequence[int]) -> Optional[list[float]]:
        """Those of the script's function."""
        import tensorflow as tf

        rate = getattr(self._the_script(), "learning_rate", None)
        if rate is None:
            return None
        return [float(rate(tf.constant(float(step), tf.float64))) for step in steps]

    def request(self) -> Callable[[], None]:
        if self._generates:
            script, stream = self._the_script(), self._stream()
            return word_request(script, self._model, stream, _fetch)
        return predict_request(self._step, self._stream(), _fetch)

    def allocator_peak(self) -> Peak:
        return tensorflow_peak()

    def compilations(self) -> int:
        return tensorflow_compilations()

    def transfer(self) -> Optional[Transfer]:
        import tensorflow as tf

        gpus = tf.config.list_logical_devices("GPU")
        return self._transfer_to(gpus[0].name, "GPU") if gpus else None

    def _transfer_to(self, name: str, kind: str) -> Transfer:
        """What the script's iterator gives tells where its tensors are."""
        import tensorflow as tf

        device = tensorflow_device(name)
        given = [tf.convert_to_tensor(tensor) for tensor in next(self._stream())]
        if any(kind in tensor.device for tensor in given if tensor.dtype.is_floating):
            return time_data(device, self._data)
        arrays = [tensor.numpy() for tensor in given]
        return time_batch(device, arrays, self._calls().steps)

    # The build.

    def _drop(self) -> None:
        self._drop_script()
        if self._dropout is not None:
            import tensorflow as tf

            tf.nn.dropout = self._dropout
        self._model = self._optimizer = self._batches = None
        self._step = _nothing
        self._dropout = self._output_perm = None
        self._data, self._names, self._initial = (), {}, []
        self._trained, self._sums = {}, None

    def _no_dropout(self) -> None:
        import tensorflow as tf

        script = self._the_script()
        for name, value in vars(script).items():
            if name.startswith("DROPOUT") and isinstance(value, float):
                setattr(script, name, 0.0)
        self._dropout = tf.nn.dropout  # for calls with a rate of their own

        def dropout(x: Any, rate: Any = 0.0, *rest: Any, **options: Any) -> Any:
            return tf.convert_to_tensor(x)

        tf.nn.dropout = dropout

    def _class_with(self, method: str) -> Any:
        """The script's only tf.Module class with this method of its own."""
        import tensorflow as tf

        script = self._the_script()
        found = [
            value
            for value in vars(script).values()
            if inspect.isclass(value)
            and issubclass(value, tf.Module)
            and value.__module__ == script.__name__
            and any(method in vars(base) for base in value.__mro__)
        ]
        if method == "__call__" and len(found) > 1:  # layers: the model comes last
            found = [v for v in found if not hasattr(v, "apply_gradients")][-1:]
        if len(found) != 1:
            count = "no" if not found else "more than one"
            raise AdapterError(
                f"{self._file()} defines {count} tf.Module class with {method}"
            )
        return found[0]

    def _make_model(self, request: BuildRequest) -> None:
        weights = self._read_weights(request)
        make = getattr(self._the_script(), "make_model", None)
        if make is None:
            make = self._class_with("__call__")
        if any(
            p.default is p.empty for p in inspect.signature(make).parameters.values()
        ):
            if weights is None:
                raise AdapterError(
                    f"{make.__name__}(weights) of {self._file()} needs a weights file"
                )
            self._model = make(dict(weights))
        else:
            self._model = make()
        self._set_weights(weights)

    def _set_weights(self, weights: Optional[Mapping[str, Array]]) -> None:
        """Gives the model's variables these values, and the dtype of this worker."""
        import tensorflow as tf

        have = _variables(self._model)
        for target in weights or {}:
            if target not in have:
                raise AdapterError(f"the model of {self._file()} has no '{target}'")
        for target, (owner, attribute, variable) in have.items():
            value = variable.numpy() if weights is None else weights.get(target)
            if value is None and self._generates and not variable.trainable:
                continue  # a cache
            if value is None:
                raise AdapterError(
                    f"the model of {self._file()} has '{target}', the workload has not"
                )
            if tuple(variable.shape) != value.shape:
                raise AdapterError(
                    f"'{target}' of {self._file()} has shape {list(variable.shape)}, "
                    f"the workload's has {list(value.shape)}"
                )
            if weights is None:
                self._names[target] = LayoutEntry(target), tuple(value.shape)
            if variable.dtype.is_floating and self._dtype == "float64":
                value = value.astype(self._dtype)
                new = tf.Variable(
                    value,
                    trainable=variable.trainable,
                    synchronization=variable.synchronization,
                    aggregation=variable.aggregation,
                )
                if isinstance(owner, (list, dict)):
                    owner[attribute] = new
                else:
                    setattr(owner, attribute, new)
            else:  # what the script stores in half precision stays so
                variable.assign(tf.cast(value, variable.dtype))

    def _make_optimizer(self) -> None:
        make = getattr(self._the_script(), "make_optimizer", None)
        if make is not None:
            self._optimizer = make(self._model)
        else:
            optimizer_class = self._class_with("apply_gradients")
            self._optimizer = optimizer_class(self._model.trainable_variables)
        if not callable(getattr(self._optimizer, "apply_gradients", None)):
            raise AdapterError(
                f"the optimizer of {self._file()} has no apply_gradients(gradients)"
            )

    def _apart(self, request: BuildRequest) -> list[tuple[Any, Any]]:
        """A model and an optimizer of each device of this process."""
        import tensorflow as tf

        modules = []
        for device in self._strategy().extended.worker_devices:
            with tf.device(device):
                self._make_model(request)
                self._make_optimizer()
            modules.append((self._model, self._optimizer))
        return modules

    def _compiled(self) -> Callable[..., Any]:
        """The step as the script's loop calls it: of a batch alone."""
        script = self._the_script()
        make = getattr(script, "compiled", functools.partial)
        step: Callable[..., Any]
        if self._generates:  # it compiles the step for a word itself
            step = functools.partial(script.predict_step, self._model)
        elif self._predicts:
            step = make(script.predict_step, self._model)
        else:
            step = make(self._calls().function, self._model, self._optimizer)
        return step

    def _targets(self) -> list[Any]:
        """The variables in the order of the gradients that the optimizer is given."""
        targets = getattr(self._optimizer, "targets", None)
        return list(self._model.trainable_variables if targets is None else targets)

    def _effective(self) -> dict[str, Any]:
        import tensorflow as tf

        script = self._the_script()
        step = self._step
        if isinstance(step, functools.partial):
            step = step.func
        variables = list(self._model.trainable_variables)
        device = variables[0].device if variables else ""
        effective: dict[str, Any] = {
            "batch": getattr(script, "BATCH_SIZE", None),
            "parameters": sum(int(v.shape.num_elements()) for v in variables),
            "device": device.rpartition("/device:")[2].lower() or "cpu:0",
            "devices": len(self._parts(variables[0])) if variables else 1,
            "dtype": variables[0].dtype.name if variables else self._dtype,
            "mode": "function" if hasattr(step, "python_function") else "eager",
            "jit_compile": bool(getattr(step, "_jit_compile", False)),
            "tf32": bool(tf.config.experimental.tensor_float_32_execution_enabled()),
            **self._calls().effective(),
        }
        if self._devices > 1:
            dtypes = {variable.dtype.name for variable in variables}
            effective["master_weights"] = "+".join(sorted(dtypes))
            if SILENT:
                effective.update(devices=self._local, communication="off")
        if self._optimizer is not None:
            constants = {
                name.lower(): value
                for name, value in vars(script).items()
                if name.isupper() and isinstance(value, float)
            }
            kind = type(self._optimizer)
            effective["optimizer"] = {"class": kind.__name__, **constants}
        return effective

    # State and data.

    def _need_optimizer(self) -> None:
        if self._optimizer is None:
            raise AdapterError("this build has no optimizer")

    def _reset(self) -> None:
        """Initial weights, buffers and optimizer state, first batch."""
        import numpy as np

        for variable, value in self._initial:
            # To read a variable takes less time than to assign it.
            if not np.array_equal(variable.numpy(), value):
                variable.assign(value)
        self._batches = None

    def _strategy(self) -> Any:
        """Of a script for several devices."""
        return getattr(self._the_script(), "STRATEGY", None)

    def _scope(self) -> contextlib.AbstractContextManager[Any]:
        strategy = self._strategy()
        return contextlib.nullcontext() if strategy is None else strategy.scope()

    def _parts(self, value: Any) -> tuple[Any, ...]:
        """What each device has of a batch or of a variable, the first device first."""
        strategy = self._strategy()
        parts: tuple[Any, ...] = (value,)
        if strategy is not None:
            parts = tuple(strategy.experimental_local_results(value))
        return parts

    def _check_devices(self) -> None:
        """That the script uses as many devices as its contender is to."""
        file = self._file()
        for variable in self._model.trainable_variables:
            used = len({part.device for part in self._parts(variable)})
            check_devices(file, self._local, used, "parameters are")
        if self._devices == 1:
            return
        for value in next(self._stream()):
            used = len(self._parts(value))
            check_devices(file, self._local, used, "rows of a batch are")
        self._batches = None

    def _held_by_devices(self, stream: Iterator[Any]) -> Iterator[Any]:
        if self._strategy() is None:
            return stream
        return (tuple(map(self._held, batch)) for batch in stream)

    def _held(self, value: Any) -> Array:
        """What devices have of a batch, in their order, in other processes too."""
        import numpy as np

        if self._local < self._devices:
            return np.asarray(self._strategy().gather(value, axis=0))
        return np.concatenate(list(map(np.asarray, self._parts(value))))

    def _rows(self, first: int, count: int) -> tuple[Any, ...]:
        rows = min((len(array) for array in self._data), default=0)
        check_rows(first, count, rows)
        return tuple(self._split(a[first : first + count]) for a in self._data)

    def _split(self, rows: Array) -> Any:
        """On each device its share of the rows of a batch."""
        import numpy as np
        import tensorflow as tf

        strategy = self._strategy()
        if strategy is None:
            return tf.constant(rows)
        parts = np.split(rows, strategy.num_replicas_in_sync)
        return strategy.experimental_distribute_values_from_function(
            lambda replica: tf.constant(parts[replica.replica_id_in_sync_group])
        )

    def _barrier(self, loss: Any) -> None:
        """Waits for the last update: fetches the smallest variable."""
        variables = self._model.trainable_variables
        if variables:
            min(variables, key=lambda v: v.shape.num_elements()).numpy()
        elif loss is not None:
            loss.numpy()

    def _variable(self, name: str) -> Any:
        return _variables(self._model)[self._names[name][0].target][2]

    def _canonical(self, name: str, tensor: Any) -> Array:
        entry, shape = self._names[name]
        return to_canonical(tensor.numpy().copy(), entry, shape)

    # The proof.

    def _layers(self, batch: tuple[Any, ...]) -> dict[str, Array]:
        """The first tensor of the model's graph that depends on all of a layer."""
        import numpy as np
        import tensorflow as tf

        handles = {id(v.handle): n for n in self._names for v in [self._variable(n)]}
        needed: dict[str, set[str]] = {}
        for name in self._names:
            needed.setdefault(name.rpartition(".")[0], set()).add(name)
        arguments = self._arguments(batch)

        @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
        def model() -> dict[str, Any]:
            self._model(*arguments)
            graph = tf.compat.v1.get_default_graph()
            sources = {
                inner.name: {handles[id(outer)]}
                for outer, inner in graph.captures
                if id(outer) in handles
            }
            found = {}
            for op in graph.get_operations():
                depends = set().union(
                    *(sources.get(tensor.name, set()) for tensor in op.inputs)
                )
                for tensor in op.outputs:
                    sources.setdefault(tensor.name, depends)
                real = [t for t in op.outputs if t.dtype.is_floating]
                for layer, all_of_it in needed.items():
                    if real and layer not in found and all_of_it <= depends:
                        found[layer] = real[0]
            return found

        return {f"activation/{layer}": np.array(t) for layer, t in model().items()}

    def _arguments(self, batch: tuple[Any, ...]) -> list[Any]:
        """Of the batch, what the model takes."""
        script = self._the_script()
        step = script.predict_step if self._predicts else script.train_step
        skipped = 1 if self._predicts else 2
        step = getattr(step, "python_function", step)
        known = dict(zip(list(inspect.signature(step).parameters)[skipped:], batch))
        arguments = []
        for parameter in inspect.signature(self._model.__call__).parameters.values():
            if parameter.name in known:
                arguments.append(known[parameter.name])
            elif parameter.default is parameter.empty:
                raise AdapterError(
                    f"{self._file()}: '{parameter.name}' of the model is no argument "
                    "of train_step"
                )
        return arguments

    def _prediction(self, batch: tuple[Any, ...]) -> Array:
        """By the step as it is timed; in double precision op by op."""
        import numpy as np

        if self._dtype != "float64":
            return self._canonical_output(joined(self._step(*batch), np.array))
        step = self._the_script().predict_step
        step = getattr(step, "python_function", step)
        return self._canonical_output(joined(step(self._model, *batch), np.array))

    def _one_step(self, batch: tuple[Any, ...]) -> dict[str, Array]:
        """Loss and gradients of the script's step, run eagerly."""
        import numpy as np
        import tensorflow as tf

        script = self._the_script()
        targets = self._targets() if self._optimizer is not None else None
        recorder = _Recorder(self._model, self._optimizer)
        body = getattr(script.train_step, "python_function", script.train_step)
        model = _Watched(self._model)
        loss = body(model, recorder, *batch)
        shown = model.output(sum(map(len, self._parts(batch[0]))))
        if shown is None:
            raise AdapterError(f"train_step of {self._file()} does not call its model")
        if recorder.seen is None:
            raise AdapterError(
                f"train_step of {self._file()} does not call optimizer.apply_gradients"
            )
        targets = recorder.targets if targets is None else targets
        by_variable = dict(zip(map(id, targets), recorder.seen))
        output = self._canonical_output(np.array(shown))
        tensors: dict[str, Array] = {"loss": np.array(loss), "output": output}
        for name in self._names:
            variable = self._variable(name)
            if not variable.trainable:
                continue
            grad = by_variable.get(id(variable))
            if grad is None:
                grad = tf.zeros_like(variable)
            tensors[f"grad/{name}"] = self._canonical(name, tf.convert_to_tensor(grad))
        return tensors

    def _update(self, grads: Mapping[str, Array]) -> dict[str, Array]:
        """The parameters after one update from `grads`, from the initial state."""
        import tensorflow as tf

        self._need_optimizer()
        given = {}
        names = [name for name in self._names if self._variable(name).trainable]
        for name in names:
            if name not in grads:
                raise AdapterError(f"no gradient is given for '{name}'")
            value = to_framework(grads[name], self._names[name][0])
            given[id(self._variable(name))] = tf.constant(value.astype(self._dtype))
        with self._scope():
            self._optimizer.apply_gradients([given[id(v)] for v in self._targets()])
        return {
            f"update/{name}": self._canonical(name, self._variable(name))
            for name in names
        }


def _keep_strategies(kind: str) -> None:
    """Every script of this worker gets the same strategy of a kind.

    Each numbers its all-reduces anew, and TensorFlow takes those of a second script
    for the first one's.
    """
    import tensorflow as tf

    make, made = getattr(tf.distribute, kind), {}

    def strategy(*given: Any, **options: Any) -> Any:
        key = str((given, options))
        if key not in made:
            made[key] = make(*given, **options)
        return made[key]

    setattr(tf.distribute, kind, strategy)


class _Watched:
    """Stands in for the model of `train_step`: keeps what it predicts."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._outputs: list[Any] = []

    def __call__(self, *args: Any, **options: Any) -> Any:
        output = shown = self._model(*args, **options)
        while isinstance(shown, tuple):  # (prediction, target)
            shown = shown[0]
        self._outputs.append(shown)
        return output

    def output(self, rows: int) -> Any:
        """The last one; all of them where each saw a part of the batch."""
        import tensorflow as tf

        if not self._outputs:
            return None
        last = self._outputs[-1]
        if len(last) < rows and sum(map(len, self._outputs)) == rows:
            return tf.concat(self._outputs, 0)
        return last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class _Recorder:
    """Stands in for the optimizer of `train_step`: keeps the gradients."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._optimizer = optimizer
        targets = getattr(optimizer, "targets", None)
        self.targets = list(model.trainable_variables if targets is None else targets)
        self.seen: Optional[list[Any]] = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def apply_gradients(self, gradients: Any, *rest: Any) -> None:
        given = list(gradients)
        if given and isinstance(given[0], tuple):  # (gradient, variable), as Keras
            self.targets = [variable for _, variable in given]
            given = [gradient for gradient, _ in given]
        self.seen = given


def _nothing(*_: Any) -> None:
    raise AdapterError("nothing is built")


def _wait_for(output: Any) -> None:
    """Fetches one number of the last output; steps are computed in order."""
    import tensorflow as tf

    for part in tf.nest.flatten(output):
        tf.reshape(part, [-1])[0].numpy()


def _fetch(output: Any) -> None:
    """All of an output, or of several."""
    for part in output if isinstance(output, (tuple, list)) else [output]:
        part.numpy()


def _variables(owner: Any, path: str = "") -> dict[str, tuple[Any, Any, Any]]:
    """Dotted path -> (owner, attribute or index, variable), everything below."""
    import tensorflow as tf

    if isinstance(owner, dict):
        items = list(owner.items())
    elif isinstance(owner, (list, tuple)):
        items = list(enumerate(owner))
    else:
        items = [(k, v) for k, v in vars(owner).items() if not k.startswith("_")]
    found: dict[str, tuple[Any, Any, Any]] = {}
    for key, value in items:
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, tf.Variable):
            found[name] = owner, key, value
        elif isinstance(value, (tf.Module, list, tuple, dict)):
            found.update(_variables(value, name))
    return found


def probe(probe: Probe) -> None:
    """What the environment holds that is named after it (see probe.py)."""
    probe.load_framework("tensorflow")
    probe_tensorflow(probe)
    probe.load_if_there("keras", KERAS_BACKEND="tensorflow")


def make() -> Adapter:
    return TensorFlowAdapter()
