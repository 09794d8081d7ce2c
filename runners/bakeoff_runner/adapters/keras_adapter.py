"""Keras 3, on TensorFlow, JAX or torch.

What a script has to offer, generated or edited by its user:

- ``build_model() -> keras.Model``, built, with the layer names the layout file knows;
- ``compile_model(model)``: calls ``model.compile``;
- ``load_data(path) -> (x, y)``: arrays, rows first; ``x`` may be a list or a dict;
- ``fit(model, x, y, epochs, callbacks)``: one call of ``model.fit`` that hands on
  ``epochs`` and ``callbacks``, without reading logs itself (``verbose=0``);
- ``BATCH_SIZE``.

`train` enters that ``fit`` once and stays in it: a callback waits for the next burst
before a batch begins, so that a burst is ``fit``'s own loop with all its costs, those
at the end of an epoch included. The callback has no ``on_train_batch_end``: Keras
would read the logs before each call of it, and wait for the step.

`losses` goes through the same ``fit``, with the loss tracker emptied before each step.
With ``steps_per_execution`` above 1 `fit` shows no single step; there the losses come
from ``train_on_batch``, which calls the same step function once.

In the parity proof the model runs op by op, whatever ``jit_compile`` says.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping, NoReturn, Optional

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    RunResult,
    TrainCommands,
)
from bakeoff_runner.adapters.keras_backends import BACKENDS, Backend
from bakeoff_runner.allocators import Peak
from bakeoff_runner.layout import (
    LayoutEntry,
    entry_for,
    read_layout,
    to_canonical,
    to_framework,
)
from bakeoff_runner.script import load_script, unload_script
from bakeoff_runner.tensors import read_safetensors

_SCRIPT_NAMES = {
    "build_model": "build_model()",
    "compile_model": "compile_model(model)",
    "load_data": "load_data(path)",
    "fit": "fit(model, x, y, epochs, callbacks)",
}
_OPTIONS = {"backend", "jit_compile", "steps_per_execution"}
_FOREVER = 10**9  # epochs


class _Leave(Exception):
    """Takes `train` out of `fit` before the next batch."""


class KerasAdapter(Adapter):
    """One build at a time; its initial state is kept so that it can be restored."""

    def __init__(self) -> None:
        self._backend: Any = None
        self._script: Optional[ModuleType] = None
        self._model: Any = None
        self._with_optimizer = True
        self._x: Any = None
        self._y: Any = None
        self._batch = 1
        self._position = 0  # steps into the data
        self._initial: list[tuple[Any, Array]] = []
        # Canonical name -> its Keras variable, where it is kept, its canonical shape.
        self._names: dict[str, tuple[Any, LayoutEntry, tuple[int, ...]]] = {}
        self._output = LayoutEntry("output")

    def import_framework(
        self, options: Mapping[str, str], dtype: str, threads: int
    ) -> ImportInfo:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise AdapterError(f"unknown option '{unknown[0]}' of framework keras")
        name = options.get("backend", os.environ.get("KERAS_BACKEND", "tensorflow"))
        if name not in BACKENDS:
            raise AdapterError(f"'{name}' is not a backend: {', '.join(BACKENDS)}")
        os.environ["KERAS_BACKEND"] = name
        backend = self._backend = BACKENDS[name]()
        backend.prepare(dtype, threads)
        import keras
        import numpy

        keras.config.set_floatx(dtype)
        if dtype == "float64":
            _keep_double()
        keras.config.set_image_data_format("channels_last")  # not the user's keras.json
        versions = {
            "keras": keras.__version__,
            **backend.versions(),
            "numpy": numpy.__version__,
        }
        effective = {"backend": name, "dtype": keras.config.floatx()}
        return ImportInfo(
            versions, backend.device(), {**effective, **backend.effective()}
        )

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import keras

        self._drop()
        keras.utils.clear_session()
        keras.config.set_dtype_policy(keras.config.floatx())
        keras.utils.set_random_seed(1)  # a script's own seed comes after this one
        script = self._script = load_script(request.script)
        self._check_script()
        model = self._model = script.build_model()
        if not isinstance(model, keras.Model):
            raise AdapterError(f"{self._file()}: build_model() gave no keras.Model")
        if not model.built:
            raise AdapterError(f"{self._file()}: build_model() gave an unbuilt model")
        if not request.dropout:
            for layer in model._flatten_layers():
                if isinstance(getattr(layer, "rate", None), (int, float)):
                    layer.rate = 0.0
        self._load_weights(request)
        self._load_data(request)
        script.compile_model(model)
        if not model.compiled:
            raise AdapterError(f"{self._file()}: compile_model() compiled nothing")
        self._with_optimizer = request.train
        if keras.config.floatx() == "float64":
            _double_constants(model.optimizer)
        model.optimizer.build(model.trainable_variables)
        self._initial = self._state()
        return self._effective()

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        import keras

        x, y = self._rows(request.first, request.count)
        x, y = keras.tree.map_structure(keras.ops.convert_to_tensor, (x, y))
        before = self._state()
        self._restore(self._initial)
        try:
            tensors = self._one_pass(x, y)
            self._restore(self._initial)
            tensors.update(self._activations(x))
            if request.grads_in is not None:
                self._restore(self._initial)
                tensors.update(self._update(read_safetensors(request.grads_in)))
        finally:
            self._restore(before)
        return tensors

    def losses(self, steps: int) -> LossesResult:
        self._need_optimizer()
        self._restore(self._initial)
        self._position = 0
        recorder: Any = _new_recorder(self._backend, steps)
        start = time.monotonic_ns()
        if self._model.steps_per_execution == 1:
            self._fit(recorder)
        else:
            self._train_on_batches(recorder, steps)
        if len(recorder.losses) != steps:
            raise AdapterError(f"fit of {self._file()} ended before step {steps}")
        self._position = steps
        return LossesResult(
            recorder.losses, recorder.first_ns - start, recorder.last_ns - start
        )

    def run(self, steps: int, mark: Callable[[], None]) -> NoReturn:
        raise AdapterError("Keras trains in its own loop: see train()")

    def train(self, commands: TrainCommands) -> None:
        self._need_optimizer()
        bursts: Any = _new_bursts(self._backend, commands)
        try:
            self._fit(bursts)
        except _Leave:
            pass
        finally:
            self._position += bursts.total

    def allocator_peak(self) -> Peak:
        backend: Backend = self._backend
        return backend.allocator_peak()

    def close(self) -> None:
        self._drop()

    # The build.

    def _drop(self) -> None:
        if self._script is not None:
            unload_script(self._script)
        self._script = self._model = self._x = self._y = None
        self._initial, self._names, self._position = [], {}, 0

    def _the_script(self) -> ModuleType:
        if self._script is None:
            raise AdapterError("nothing is built")
        return self._script

    def _file(self) -> str:
        return os.path.basename(str(self._the_script().__file__))

    def _check_script(self) -> None:
        script = self._the_script()
        for name, call in _SCRIPT_NAMES.items():
            if not callable(getattr(script, name, None)):
                raise AdapterError(f"{self._file()} defines no {call}")
        batch = getattr(script, "BATCH_SIZE", None)
        if type(batch) is not int or batch < 1:
            raise AdapterError(f"{self._file()} defines no BATCH_SIZE")
        self._batch = batch
        wanted = os.environ.get("KERAS_BACKEND")
        if wanted != self._backend.name:
            os.environ["KERAS_BACKEND"] = self._backend.name
            raise AdapterError(
                f"{self._file()} sets KERAS_BACKEND to {wanted}, the contender's "
                f"backend is {self._backend.name}"
            )

    def _load_weights(self, request: BuildRequest) -> None:
        layout = read_layout(self._layout_file(request))
        self._output = layout.get("output", LayoutEntry("output"))
        mine = {v.path: v for v in self._model.weights}
        if request.weights is None:
            self._name_by_layout(layout, mine)
            return
        weights = read_safetensors(request.weights)
        for name, array in weights.items():
            entry = entry_for(layout, name)
            variable = mine.pop(entry.target, None)
            if variable is None:
                raise AdapterError(
                    f"the model of {self._file()} has no '{entry.target}'"
                )
            value = to_framework(array, entry)
            if tuple(variable.shape) != value.shape:
                raise AdapterError(
                    f"'{entry.target}' of {self._file()} has shape "
                    f"{list(variable.shape)}, the workload's has {list(value.shape)}"
                )
            variable.assign(value.copy())
            self._names[name] = variable, entry, tuple(array.shape)
        if mine:
            raise AdapterError(
                f"the model of {self._file()} has '{min(mine)}', the workload has not"
            )

    def _layout_file(self, request: BuildRequest) -> Optional[Path]:
        if request.layout is not None:
            return request.layout
        beside = request.script.with_suffix(".layout.json")
        return beside if beside.is_file() else None

    def _name_by_layout(self, layout: Any, mine: Mapping[str, Any]) -> None:
        """Own initial values: names as the layout has them, else Keras's paths."""
        entries = {entry.target: (name, entry) for name, entry in layout.items()}
        for path, variable in mine.items():
            name, entry = entries.get(path, (path, LayoutEntry(path)))
            shape = tuple(variable.shape)
            if entry.view is not None:  # a permuted linear weight: O,I
                shape = tuple(reversed(shape)) if len(shape) == 2 else entry.view
            elif entry.perm is not None:
                inverse = sorted(range(len(shape)), key=entry.perm.__getitem__)
                shape = tuple(shape[axis] for axis in inverse)
            self._names[name] = variable, entry, shape

    def _load_data(self, request: BuildRequest) -> None:
        import keras
        import numpy as np

        if request.data is None:
            raise AdapterError("keras needs a data file")
        loaded = self._the_script().load_data(request.data)
        if not isinstance(loaded, (tuple, list)) or len(loaded) != 2:
            raise AdapterError(f"{self._file()}: load_data(path) did not give (x, y)")

        def cast(array: Any) -> Array:
            array = np.asarray(array)
            real = np.issubdtype(array.dtype, np.floating)
            return array.astype(keras.config.floatx(), copy=False) if real else array

        self._x, self._y = keras.tree.map_structure(cast, tuple(loaded))
        if len(self._y) < self._batch:
            raise AdapterError(
                f"the data has {len(self._y)} rows, a batch {self._batch}"
            )

    def _effective(self) -> dict[str, Any]:
        import keras

        model = self._model
        return {
            "batch": self._batch,
            "parameters": sum(_size(v.shape) for v in model.trainable_variables),
            "backend": keras.config.backend(),
            "dtype": keras.config.floatx(),
            "jit_compile": bool(model.jit_compile),
            "run_eagerly": bool(model.run_eagerly),
            "steps_per_execution": int(model.steps_per_execution),
            # One mark for each call of the compiled function.
            "steps_per_mark": int(model.steps_per_execution),
            "optimizer": _describe_optimizer(model.optimizer),
            "normalisation": _describe_norms(model),
            **self._backend.effective(),
        }

    # State.

    def _variables(self) -> list[Any]:
        model = self._model
        return [*model.variables, *model.optimizer.variables]

    def _state(self) -> list[tuple[Any, Array]]:
        return [(variable, _numpy(variable)) for variable in self._variables()]

    def _restore(self, state: list[tuple[Any, Array]]) -> None:
        for variable, value in state:
            variable.assign(value.copy())

    def _need_optimizer(self) -> None:
        if not self._with_optimizer:
            raise AdapterError("this build has no optimizer")

    def _rows(self, first: int, count: int) -> tuple[Any, Any]:
        import keras

        if first + count > len(self._y):
            raise AdapterError(f"the data has {len(self._y)} rows, not {first + count}")
        rows: tuple[Any, Any] = keras.tree.map_structure(
            lambda array: array[first : first + count], (self._x, self._y)
        )
        return rows

    # Training.

    def _fit(self, callback: Any) -> None:
        """The script's `fit`, from the batch where the last one stopped."""
        import keras
        import numpy as np

        full = len(self._y) // self._batch
        start = self._position % full * self._batch

        def turn(array: Array) -> Array:
            return np.concatenate([array[start : full * self._batch], array[:start]])

        x, y = self._x, self._y
        if start:
            x, y = keras.tree.map_structure(turn, (x, y))
        self._the_script().fit(self._model, x, y, epochs=_FOREVER, callbacks=[callback])

    def _train_on_batches(self, recorder: Any, steps: int) -> None:
        full = len(self._y) // self._batch
        for step in range(steps):
            x, y = self._rows(step % full * self._batch, self._batch)
            logs = self._model.train_on_batch(x, y, return_dict=True)
            recorder.record(self._model, logs)

    # The proof.

    def _one_pass(self, x: Any, y: Any) -> dict[str, Array]:
        import numpy as np

        model = self._model
        found = self._backend.gradients(model, x, y)
        by_id = {id(v): g for v, g in zip(model.trainable_variables, found.grads)}
        after = {id(v): b for v, b in zip(model.non_trainable_variables, found.buffers)}
        output = found.output
        if self._output.perm is not None:
            axes = [self._output.perm.index(a) for a in range(output.ndim)]
            canonical = [output.shape[axis] for axis in axes]
            output = to_canonical(output, self._output, canonical)
        tensors = {"loss": np.array(found.loss), "output": output}
        for name, (variable, entry, shape) in self._names.items():
            if id(variable) in by_id:
                tensors[f"grad/{name}"] = to_canonical(
                    by_id[id(variable)], entry, shape
                )
            else:
                tensors[f"buffer/{name}"] = to_canonical(
                    after[id(variable)], entry, shape
                )
        return tensors

    def _activations(self, x: Any) -> dict[str, Array]:
        """Outputs of layers with parameters, where the model is a graph of layers."""
        import keras
        import numpy as np

        owners = {
            entry.target.partition("/")[0]: name.rpartition(".")[0]
            for name, (_, entry, _) in self._names.items()
        }
        layers = [layer for layer in self._model.layers if layer.name in owners]
        if not layers:
            return {}
        try:
            outputs = [layer.output for layer in layers]
            values = keras.Model(self._model.inputs, outputs)(x, training=True)
        except (AttributeError, ValueError):  # called twice, or a model of its own kind
            return {}
        tensors = {}
        values = values if len(outputs) > 1 else [values]  # as Keras gives a single one
        for layer, value in zip(layers, values):
            array = np.array(keras.ops.convert_to_numpy(value))
            if array.ndim == 4 and _channels_last(layer):
                array = array.transpose(0, 3, 1, 2)
            tensors[f"activation/{owners[layer.name]}"] = array
        return tensors

    def _update(self, grads: Mapping[str, Array]) -> dict[str, Array]:
        """The parameters after one update from `grads`, from the initial state."""
        import keras

        self._need_optimizer()
        model = self._model
        trained = {id(variable) for variable in model.trainable_variables}
        given = {}
        for name, (variable, entry, _) in self._names.items():
            if id(variable) not in trained:
                continue
            if name not in grads:
                raise AdapterError(f"no gradient is given for '{name}'")
            given[id(variable)] = keras.ops.convert_to_tensor(
                to_framework(grads[name], entry).copy(), dtype=variable.dtype
            )
        variables = [v for v in model.trainable_variables if id(v) in given]
        model.optimizer.apply([given[id(v)] for v in variables], variables)
        return {
            f"update/{name}": to_canonical(_numpy(variable), entry, shape)
            for name, (variable, entry, shape) in self._names.items()
            if id(variable) in given
        }


def _new_recorder(backend: Backend, steps: int) -> object:
    import keras

    class Recorder(keras.callbacks.Callback):  # type: ignore[misc]
        """Keeps the loss of each batch, and ends `fit` after `steps`."""

        def __init__(self) -> None:
            super().__init__()
            self.losses: list[float] = []
            self.first_ns = self.last_ns = 0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            backend.before_reset(self.model)
            self.model.reset_metrics()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.record(self.model, logs)
            if len(self.losses) == steps:
                self.model.stop_training = True

        def record(self, model: Any, logs: Mapping[str, Any]) -> None:
            self.losses.append(float(logs["loss"]))
            if len(self.losses) in (1, steps):
                backend.barrier(model)
                self.last_ns = time.monotonic_ns()
                self.first_ns = self.first_ns or self.last_ns

    return Recorder()


def _new_bursts(backend: Backend, commands: TrainCommands) -> object:
    import keras

    class Bursts(keras.callbacks.Callback):  # type: ignore[misc]
        """Waits at the boundaries of bursts; see the module's docstring."""

        def __init__(self) -> None:
            super().__init__()
            self.mark = commands.mark
            self.previous: Optional[int] = None  # first step of the last execution
            self.left = self.done = self.total = self.start_ns = 0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if self.previous is None:
                self.begin()
            else:
                self.mark()
                self.count(self.steps_since(self.previous, batch))
            self.previous = batch

        def steps_since(self, previous: int, batch: int) -> int:
            if batch > previous:
                return batch - previous
            # A new epoch: the last execution of the old one may have been shorter.
            in_epoch: Optional[int] = self.params.get("steps")
            if in_epoch is None:
                return int(self.model.steps_per_execution)
            return in_epoch - previous

        def count(self, steps: int) -> None:
            self.done += steps
            self.total += steps
            self.left -= steps
            if self.left <= 0:
                backend.barrier(self.model)
                ns = time.monotonic_ns() - self.start_ns
                commands.answer(RunResult(ns, steps=self.done))
                self.begin()

        def begin(self) -> None:
            command = commands.next()
            if command is None:
                raise _Leave
            self.left, self.done = command.steps, 0
            self.start_ns = time.monotonic_ns()

    return Bursts()


def _numpy(variable: Any) -> Array:
    import keras
    import numpy as np

    return np.array(keras.ops.convert_to_numpy(variable.value))


def _keep_double() -> None:
    """Keeps Keras from rounding float64 to float32 in layers and ops.

    With JAX and torch its type promotion turns every 64-bit type into the 32-bit one;
    BatchNormalization, `ops.mean` and losses would then leave double precision.
    """
    from keras.src.backend.common import dtypes

    dtypes.BIT64_TO_BIT32_DTYPE.pop("float64", None)


def _double_constants(optimizer: Any) -> None:
    """Makes constants double that Keras casts to a dtype: on TensorFlow by float32."""
    import keras
    import numpy as np

    names = ["beta_1", "beta_2", "weight_decay"]
    if isinstance(optimizer, keras.optimizers.SGD):
        names.append("momentum")
    for name in names:
        if isinstance(getattr(optimizer, name, None), float):
            setattr(optimizer, name, np.float64(getattr(optimizer, name)))


def _size(shape: Any) -> int:
    size = 1
    for length in shape:
        size *= int(length)
    return size


def _channels_last(layer: Any) -> bool:
    if hasattr(layer, "data_format"):
        return bool(layer.data_format == "channels_last")
    return getattr(layer, "axis", None) in (-1, 3, [3], [-1]) and hasattr(
        layer, "moving_mean"
    )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _describe_optimizer(optimizer: Any) -> dict[str, Any]:
    config = optimizer.get_config()
    config.pop("name", None)
    return {
        "class": type(optimizer).__name__,
        **{key: _plain(value) for key, value in config.items()},
    }


def _describe_norms(model: Any) -> list[dict[str, Any]]:
    found = {
        (type(layer).__name__, layer.epsilon, getattr(layer, "momentum", None))
        for layer in model._flatten_layers()
        if isinstance(getattr(layer, "epsilon", None), float)
    }
    return [
        {"layer": kind, "eps": eps, "momentum": momentum}
        for kind, eps, momentum in sorted(found, key=str)
    ]


def make() -> Adapter:
    return KerasAdapter()
