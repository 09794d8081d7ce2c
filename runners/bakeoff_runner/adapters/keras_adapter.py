"""Keras 3, on TensorFlow, JAX or torch; and Keras 2, with its own `Library`.

What a script has to offer, generated or edited by its user:

- ``build_model() -> keras.Model``, built; its layers have the names that the layout
  file knows, or the order of the workload's parameters;
- ``compile_model(model)``: calls ``model.compile``;
- ``load_data(path) -> (x, y)``: arrays, rows first; ``x`` may be a list or a dict;
- ``fit(model, x, y, epochs, callbacks)``: one call of ``model.fit`` that hands on
  ``epochs`` and ``callbacks``, without reading logs itself (``verbose=0``);
- ``BATCH_SIZE``.

A script of the user's own needs ``build_model`` alone, if that gives a compiled model:
the others have defaults, with the batch and the divisor of the recipe (defaults.py).

`train` enters that ``fit`` once and stays in it: a callback waits for the next burst
before a batch begins, so that a burst is ``fit``'s own loop with all its costs, those
at the end of an epoch included. The callback has no ``on_train_batch_end``: Keras
would read the logs before each call of it, and wait for the step.

`losses` goes through the same ``fit``, with the loss tracker emptied before each step.
With ``steps_per_execution`` above 1 `fit` shows no single step; there the losses come
from ``train_on_batch``, which calls the same step function once.

A script that predicts has ``load_data(path) -> x``, ``batches(x)`` (an endless
iterator) and ``predict_step(model, x) -> output`` in place of ``fit``.

In the parity proof the model runs op by op, whatever ``jit_compile`` says, or, where
dropout is proven, as one graph. On JAX XLA then optimizes nothing.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
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
    TrainCommands,
)
from bakeoff_runner.adapters.keras_backends import Backend, Gradients
from bakeoff_runner.adapters.keras_libraries import Keras3, Library
from bakeoff_runner.adapters.keras_waits import Waits, watch
from bakeoff_runner.adapters.silence import SILENT
from bakeoff_runner.defaults import read_inputs
from bakeoff_runner.generation import prove_generation, word_request
from bakeoff_runner.layout import (
    LayoutEntry,
    by_order,
    entry_for,
    read_layout,
    to_canonical,
    to_framework,
)
from bakeoff_runner.pipeline import digest
from bakeoff_runner.prediction import (
    PREDICTION_NAMES,
    joined,
    predict_burst,
    predict_request,
)
from bakeoff_runner.script import (
    ScriptAdapter,
    check_devices,
    check_options,
    check_rows,
)
from bakeoff_runner.tensors import read_safetensors
from bakeoff_runner.transfers import Transfer, time_batch, time_data

_SCRIPT_NAMES = {
    "build_model": "build_model()",
    "compile_model": "compile_model(model)",
    "load_data": "load_data(path)",
    "fit": "fit(model, x, y, epochs, callbacks)",
}
_PREDICTION_NAMES = {
    **PREDICTION_NAMES,
    "build_model": "build_model()",
    "compile_model": "compile_model(model)",
}
_FOREVER = 10**9  # epochs


class _Leave(Exception):
    """Takes `train` out of `fit` before the next batch."""


class KerasAdapter(ScriptAdapter):
    """One build at a time; its initial state is kept so that it can be restored."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._backend: Any = None
        self._waits = Waits()
        self._model: Any = None
        self._with_optimizer = True
        self._predicts = False
        self._generates = False
        self._batches: Optional[Iterator[Any]] = None
        self._x: Any = None
        self._y: Any = None
        self._batch = 1
        self._steps_per_execution = 1
        self._position = 0  # steps into the data
        self._initial: list[tuple[Any, Array]] = []
        # States of the generators of random numbers, as the last proof left them.
        self._drawn: list[tuple[Any, Array]] = []
        # Canonical name -> its Keras variable, where it is kept, its canonical shape.
        self._names: dict[str, tuple[Any, LayoutEntry, tuple[int, ...]]] = {}
        self._output = LayoutEntry("output")

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        library = self._library
        check_options(options, library.options, library.framework)
        backend = self._backend = library.backend(options)
        backend.prepare(threads)
        backend.spread(int(options.get("devices", "1")))
        import numpy

        library.start()
        self._waits = watch(library, backend)
        versions = {
            library.keras.__name__: library.keras.__version__,
            **backend.versions(),
            "numpy": numpy.__version__,
        }
        effective = {"backend": backend.name}
        return ImportInfo(
            versions, backend.device(), {**effective, **backend.effective()}
        )

    def build(self, request: BuildRequest) -> dict[str, Any]:
        library, keras = self._library, self._library.keras
        self._drop()
        library.widen(False)
        self._backend.set_dtype(request.dtype)
        library.set_dtype(request.dtype)
        library.clear()
        keras.utils.set_random_seed(1)  # a script's own seed comes after this one
        script = self._load_script(request)
        library.widen(request.dtype == "float64" and bool(self._stated))
        self._predicts, self._generates = request.predict, request.generate
        if not request.predict:
            self._provide(
                load_data=self._default_data,
                fit=self._default_fit,
                compile_model=lambda model: None,
            )
        self._check_script()
        model = self._model = script.build_model()
        if not isinstance(model, keras.Model):
            raise AdapterError(f"{self._file()}: build_model() gave no keras.Model")
        if not model.built and self._stated and request.data:
            self._build_model(request.data)
        if not model.built:
            raise AdapterError(f"{self._file()}: build_model() gave an unbuilt model")
        rates = [
            layer
            for layer in model._flatten_layers()
            if isinstance(getattr(layer, "rate", None), (int, float))
        ]
        for layer in rates if not request.dropout else []:
            layer.rate = 0.0
        if library.floatx() == "float64":
            library.double_constants(model)
        self._load_weights(request)
        self._load_data(request)
        script.compile_model(model)
        if not library.compiled(model):
            raise AdapterError(f"{self._file()}: compile_model() compiled nothing")
        self._steps_per_execution = library.steps_per_execution(model)
        masks = any(layer.rate > 0 for layer in rates)
        self._backend.compiled(model, library.floatx() == "float64", masks)
        if self._predicts:
            self._initial = [(v, library.value(v)) for v in model.variables]
            return self._effective()
        self._check_devices()
        self._with_optimizer = request.train
        if library.floatx() == "float64":
            _double_constants(keras, model.optimizer)
        model.optimizer.build(model.trainable_variables)
        self._initial = self._state()
        return self._effective()

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        if self._generates:
            words = self._library.tensor(self._rows(request.first, request.count)[0])
            script, model = self._the_script(), self._model
            return prove_generation(script, model, words, self._library.array)
        if self._predicts:
            return {"output": self._prediction(request.first, request.count)}
        library = self._library
        x, y = library.map(library.tensor, self._rows(request.first, request.count))
        before = self._state()
        moved = self._moved(before)
        self._restore([*moved, *self._drawn])  # random numbers go on
        try:
            tensors = self._one_pass(x, y)
            if request.activations:
                self._restore(self._initial)
                tensors.update(self._activations(x))
            if request.grads_in is not None:
                self._restore(self._initial)
                tensors.update(self._update(read_safetensors(request.grads_in)))
        finally:
            # A pass alone writes no trained weight: to assign them all takes longer.
            one_pass = not (moved or request.activations or request.grads_in)
            self._restore(self._untrained(before) if one_pass else before)
        return tensors

    def losses(self, steps: int) -> LossesResult:
        self._need_optimizer()
        self._restore(self._initial)
        self._position = 0
        recorder: Any = _new_recorder(self._library, self._backend, steps)
        start = time.monotonic_ns()
        if self._steps_per_execution == 1:
            self._fit(recorder)
        else:
            self._train_on_batches(recorder, steps)
        if len(recorder.losses) != steps:
            raise AdapterError(f"fit of {self._file()} ended before step {steps}")
        self._position = steps
        return LossesResult(
            recorder.losses, recorder.first_ns - start, recorder.last_ns - start
        )

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        if not self._predicts:
            raise AdapterError("Keras trains in its own loop: see train()")
        return predict_burst(
            self._predict_step(),
            self._stream(),
            steps,
            mark,
            self._to_host,
            self._backend.arrays(),
        )

    def state(self) -> dict[str, Array]:
        variables = {name: named[0] for name, named in self._names.items()}
        optimizer = None if self._predicts else self._averaging()
        if optimizer is not None:
            averages = self._library.averages(optimizer, self._model)
            for name, (variable, _, _) in self._names.items():
                if id(variable) in averages:
                    variables[f"ema/{name}"] = averages[id(variable)]
        return {
            key: to_canonical(
                self._library.value(variable),
                *self._names[key.removeprefix("ema/")][1:],
            )
            for key, variable in variables.items()
        }

    def _averaging(self) -> Any:
        """The optimizer that keeps averages of the weights; None: none does."""
        optimizer = self._model.optimizer
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # loss scaling
        return optimizer if getattr(optimizer, "use_ema", False) else None

    def rates(self, steps: Sequence[int]) -> Optional[list[float]]:
        """Those of the schedule that the optimizer was given."""
        rate = self._model.optimizer._learning_rate
        schedules = self._library.keras.optimizers.schedules
        if not isinstance(rate, schedules.LearningRateSchedule):
            return None
        return [float(self._library.array(rate(step))) for step in steps]

    def request(self) -> Callable[[], None]:
        if self._generates:
            script, stream = self._the_script(), self._stream()
            return word_request(script, self._model, stream, self._to_host)
        return predict_request(self._predict_step(), self._stream(), self._to_host)

    def _predict_step(self) -> Callable[..., Any]:
        return functools.partial(self._the_script().predict_step, self._model)

    def train(self, commands: TrainCommands) -> None:
        if self._predicts:
            return super().train(commands)
        self._need_optimizer()
        bursts: Any = _new_bursts(
            self._library, self._backend, commands, self._waits, self._named
        )
        try:
            self._fit(bursts)
        except _Leave:
            pass
        finally:
            self._position += bursts.total

    def _named(self, sums: list[float]) -> dict[str, float]:
        """What there is of every trainable variable, by canonical name."""
        by_id = dict(zip(map(id, self._model.trainable_variables), sums))
        return {
            name: by_id[id(variable)]
            for name, (variable, _, _) in self._names.items()
            if id(variable) in by_id
        }

    def restore(self) -> None:
        self._backend.before_reset(self._model)
        self._restore(self._initial)

    def nudge(self, changes: Mapping[str, Array]) -> None:
        """The mean of the losses begins anew as well."""
        self._backend.before_reset(self._model)
        trained = {id(variable) for variable in self._model.trainable_variables}
        for name, array in changes.items():
            variable, entry, _ = self._names[name]
            if id(variable) not in trained:
                raise AdapterError(f"the model of {self._file()} trains no '{name}'")
            change = to_framework(array, entry)
            variable.assign(self._library.value(variable) + change)
        if not self._predicts:
            self._model.reset_metrics()

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        """Those that `fit` hands to the function which it calls for a step."""
        self._restore(self._initial)
        self._position = 0
        model, library = self._model, self._library
        compiled = model.train_function
        hashes: list[str] = []

        def take(batch: Any) -> None:
            if len(hashes) < count:
                leaves = [leaf for leaf in library.leaves(batch) if leaf is not None]
                held = [self._held(leaf) for leaf in leaves]
                hashes.append(digest(map(library.array, held), row_shapes))
            model.stop_training = len(hashes) == count

        self._backend.drain(model, self._steps_per_execution, take)
        try:
            self._fit(library.keras.callbacks.Callback())
        finally:
            model.train_function = compiled
        self._restore(self._initial)
        return hashes

    def _held(self, leaf: Any) -> Any:
        """The rows of a batch, as each device holds its own."""
        backend: Backend = self._backend
        held, parts = backend.rows(leaf)
        check_devices(self._file(), backend.devices, parts, "rows of a batch are")
        return held

    def _check_devices(self) -> None:
        backend: Backend = self._backend
        for variable in self._model.trainable_variables:
            used = backend.used(variable.value)
            check_devices(self._file(), backend.devices, used, "parameters are")

    def allocator_peak(self) -> Peak:
        backend: Backend = self._backend
        return backend.allocator_peak()

    def compilations(self) -> int:
        backend: Backend = self._backend
        return backend.compilations()

    def transfer(self) -> Optional[Transfer]:
        backend: Backend = self._backend
        return None if backend.device() == "cpu" else self._transfer()

    def _transfer(self) -> Transfer:
        """`fit` gets arrays on the host; the tensors of predict_step stay there."""
        leaves, device = self._library.leaves, self._backend.copies()
        if self._predicts:
            return time_data(device, leaves(self._x))
        return time_batch(device, leaves(self._rows(0, self._batch)))

    # The build.

    def _drop(self) -> None:
        self._drop_script()
        self._model = self._x = self._y = self._batches = None
        self._initial, self._names, self._position = [], {}, 0
        self._drawn = []

    def _check_script(self) -> None:
        script = self._the_script()
        names = _PREDICTION_NAMES if self._predicts else _SCRIPT_NAMES
        self._require(names)
        batch = getattr(script, "BATCH_SIZE", None)
        if type(batch) is not int or batch < 1:
            raise AdapterError(f"{self._file()} defines no BATCH_SIZE")
        self._batch = batch
        self._library.check_script(self._file(), self._backend)

    def _load_weights(self, request: BuildRequest) -> None:
        layout = read_layout(self._layout_file(request))
        self._output = layout.get("output", LayoutEntry("output"))
        mine = {self._library.path(v): v for v in self._model.weights}
        if request.weights is None:
            self._name_by_layout(layout, mine)
            return
        weights = read_safetensors(request.weights)
        if self._stated:
            shapes = {path: tuple(variable.shape) for path, variable in mine.items()}
            layout = by_order(layout, weights, shapes)
        for name, array in weights.items():
            entry = entry_for(layout, name)
            variable = mine.pop(entry.target, None)
            if variable is None and name in self._stated.frozen:
                variable = self._library.variable(to_framework(array, entry))
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
        if self._generates:  # caches
            mine = {name: v for name, v in mine.items() if v.trainable}
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
        import numpy as np

        library = self._library
        if request.data is None:
            raise AdapterError(f"{library.framework} needs a data file")
        loaded = self._the_script().load_data(request.data)
        if self._predicts:
            loaded = loaded, None
        elif not isinstance(loaded, (tuple, list)) or len(loaded) != 2:
            raise AdapterError(f"{self._file()}: load_data(path) did not give (x, y)")

        def cast(array: Any) -> Array:
            if array is None:
                return None
            array = np.asarray(array)
            real = np.issubdtype(array.dtype, np.floating)
            return array.astype(library.floatx(), copy=False) if real else array

        self._x, self._y = library.map(cast, tuple(loaded))
        if self._row_count() < self._batch:
            raise AdapterError(
                f"the data has {self._row_count()} rows, a batch {self._batch}"
            )

    def _default_data(self, path: str) -> tuple[Any, Any]:
        """The inputs and the target; pictures as Keras's image_data_format has them."""
        import numpy as np

        *inputs, y = read_inputs(self._stated, path)
        last = self._library.keras.backend.image_data_format() == "channels_last"
        arrays = [
            np.ascontiguousarray(np.moveaxis(array, 1, -1))
            if last and array.ndim == 4
            else array
            for array in inputs
        ]
        return (arrays[0] if len(arrays) == 1 else arrays), y

    def _build_model(self, path: Path) -> None:
        """Of a Sequential without an Input: by the shape of the data."""
        x, _ = self._the_script().load_data(path)
        self._model(self._library.map(lambda array: array[:1], x))

    def _default_fit(
        self, model: Any, x: Any, y: Any, epochs: int, callbacks: list[Any]
    ) -> Any:
        rows = len(y) // self._batch * self._batch
        x, y = self._library.map(lambda array: array[:rows], (x, y))
        return model.fit(
            x,
            y,
            batch_size=self._batch,
            epochs=epochs,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )

    def _row_count(self) -> int:
        data = self._x if self._y is None else (self._x, self._y)
        return min(len(array) for array in self._library.leaves(data))

    def _effective(self) -> dict[str, Any]:
        model = self._model
        effective = {
            "batch": self._batch,
            "parameters": sum(_size(v.shape) for v in model.trainable_variables),
            "backend": self._backend.name,
            "devices": self._backend.devices,
            "dtype": self._library.floatx(),
            "jit_compile": bool(model.jit_compile),
            "run_eagerly": bool(model.run_eagerly),
            "steps_per_execution": self._steps_per_execution,
            # One mark for each call of the compiled function.
            "steps_per_mark": self._steps_per_execution,
            "normalisation": _describe_norms(model),
            **self._backend.effective(),
        }
        if self._backend.devices > 1:
            dtypes = {str(v.dtype) for v in model.trainable_variables}
            effective["master_weights"] = "+".join(sorted(dtypes))
            if SILENT:
                effective["communication"] = "off"
        if not self._predicts:
            effective["optimizer"] = _describe_optimizer(model.optimizer)
        return effective

    # State.

    def _variables(self) -> list[Any]:
        model = self._model
        mine = self._library.optimizer_variables(model.optimizer)
        return [*model.variables, *mine]

    def _state(self) -> list[tuple[Any, Array]]:
        value = self._library.value
        return [(variable, value(variable)) for variable in self._variables()]

    def _moved(self, now: list[tuple[Any, Array]]) -> list[tuple[Any, Array]]:
        """The initial values of the variables that have others now."""
        import numpy as np

        first = {id(variable): value for variable, value in self._initial}
        return [
            (variable, first[id(variable)])
            for variable, value in now
            if id(variable) in first  # else it was made after the build
            and not np.array_equal(first[id(variable)], value)
        ]

    def _untrained(self, state: list[tuple[Any, Array]]) -> list[tuple[Any, Array]]:
        if self._library.loss_scale(self._model.optimizer) is not None:
            return state  # a pass may have made the scale smaller
        ids = {id(variable) for variable in self._model.non_trainable_variables}
        return [(variable, value) for variable, value in state if id(variable) in ids]

    def _restore(self, state: list[tuple[Any, Array]]) -> None:
        for variable, value in state:
            variable.assign(value.copy())

    def _need_optimizer(self) -> None:
        if not self._with_optimizer:
            raise AdapterError("this build has no optimizer")

    def _rows(self, first: int, count: int) -> tuple[Any, Any]:
        check_rows(first, count, self._row_count())
        rows: tuple[Any, Any] = self._library.map(
            lambda array: None if array is None else array[first : first + count],
            (self._x, self._y),
        )
        return rows

    # Training.

    def _fit(self, callback: Any) -> None:
        """The script's `fit`, from the batch where the last one stopped."""
        import numpy as np

        full = self._row_count() // self._batch
        start = self._position % full * self._batch

        def turn(array: Array) -> Array:
            return np.concatenate([array[start : full * self._batch], array[:start]])

        x, y = self._x, self._y
        if start:
            x, y = self._library.map(turn, (x, y))
        self._waits.start(full)
        # An execution cut short leaves Keras 2 with its length.
        self._library.set_steps_per_execution(self._model, self._steps_per_execution)
        # The end of a `fit` makes the averages the weights; a burst's end is no end.
        optimizer = self._averaging()
        if optimizer is not None:
            object.__setattr__(optimizer, "finalize_variable_values", lambda _: None)
        self._the_script().fit(self._model, x, y, epochs=_FOREVER, callbacks=[callback])

    def _train_on_batches(self, recorder: Any, steps: int) -> None:
        full = self._row_count() // self._batch
        self._library.set_steps_per_execution(self._model, 1)  # of one batch
        for step in range(steps):
            x, y = self._rows(step % full * self._batch, self._batch)
            logs = self._model.train_on_batch(x, y, return_dict=True)
            recorder.record(self._model, logs)

    # The proof.

    def _prediction(self, first: int, count: int) -> Array:
        """By the step as it is timed; in double precision op by op."""
        import numpy as np

        library = self._library
        x = library.map(library.tensor, self._rows(first, count)[0])
        if library.floatx() == "float64":
            output = joined(self._model(x, training=False), library.array)
        else:
            output = joined(self._the_script().predict_step(self._model, x), np.array)
        return self._canonical_output(output)

    def _stream(self) -> Iterator[Any]:
        if self._batches is None:
            self._batches = zip(self._the_script().batches(self._x))
        return self._batches

    def _to_host(self, output: Any) -> None:
        """Waits for an output that a script of one's own left on its device."""
        for part in output if isinstance(output, (tuple, list)) else [output]:
            if hasattr(part, "shape"):
                self._library.array(part)

    def _canonical_output(self, output: Array) -> Array:
        if self._output.perm is None:
            return output
        axes = [self._output.perm.index(a) for a in range(output.ndim)]
        canonical = [output.shape[axis] for axis in axes]
        return to_canonical(output, self._output, canonical)

    def _one_pass(self, x: Any, y: Any) -> dict[str, Array]:
        import numpy as np

        model = self._model
        found = self._gradients(x, y)
        by_id = {id(v): g for v, g in zip(model.trainable_variables, found.grads)}
        others = list(zip(model.non_trainable_variables, found.buffers))
        self._drawn = [
            (v, b) for v, b in others if "seed_generator" in self._library.path(v)
        ]
        after = {id(v): b for v, b in others}
        output = self._canonical_output(found.output)
        tensors = {"loss": np.array(found.loss), "output": output}
        for name, (variable, entry, shape) in self._names.items():
            if id(variable) in by_id:
                tensors[f"grad/{name}"] = to_canonical(
                    by_id[id(variable)], entry, shape
                )
                continue
            held = after.get(id(variable))
            if held is None:  # what a library's own code has
                held = self._library.value(variable)
            tensors[f"buffer/{name}"] = to_canonical(held, entry, shape)
        return tensors

    def _gradients(self, x: Any, y: Any) -> Gradients:
        """Where the loss is scaled, once its scale is small enough, as in training."""
        import numpy as np

        model = self._model
        backend: Backend = self._backend
        variable = self._library.loss_scale(model.optimizer)
        if variable is None:
            return backend.gradients(model, x, y, 1)
        scale = np.float32(self._library.value(variable))
        found = backend.gradients(model, x, y, scale)
        while scale > 1 and not all(np.isfinite(grad).all() for grad in found.grads):
            scale = scale / 2
            self._restore(self._initial)
            variable.assign(scale)
            found = backend.gradients(model, x, y, scale)
        return found

    def _activations(self, x: Any) -> dict[str, Array]:
        """Outputs of layers with parameters, where the model is a graph of layers."""
        keras = self._library.keras
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
            array = self._library.array(value)
            if array.ndim == 4 and _channels_last(layer):
                array = array.transpose(0, 3, 1, 2)
            tensors[f"activation/{owners[layer.name]}"] = array
        return tensors

    def _update(self, grads: Mapping[str, Array]) -> dict[str, Array]:
        """The parameters after one update from `grads`, from the initial state."""
        self._need_optimizer()
        model = self._model
        trained = {id(variable) for variable in model.trainable_variables}
        given = {}
        for name, (variable, entry, _) in self._names.items():
            if id(variable) not in trained:
                continue
            if name not in grads:
                raise AdapterError(f"no gradient is given for '{name}'")
            given[id(variable)] = self._library.tensor(
                to_framework(grads[name], entry).copy(), dtype=variable.dtype
            )
        variables = [v for v in model.trainable_variables if id(v) in given]
        updates = [given[id(v)] for v in variables]
        if not self._backend.apply(model.optimizer, updates, variables):
            self._library.apply(model.optimizer, updates, variables)
        return {
            f"update/{name}": to_canonical(self._library.value(variable), entry, shape)
            for name, (variable, entry, shape) in self._names.items()
            if id(variable) in given
        }


def _new_recorder(library: Library, backend: Backend, steps: int) -> object:
    base: Any = library.keras.callbacks.Callback

    class Recorder(base):  # type: ignore[misc]
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


def _new_bursts(
    library: Library,
    backend: Backend,
    commands: TrainCommands,
    waits: Waits,
    named: Callable[[list[float]], Mapping[str, float]],
) -> object:
    base: Any = library.keras.callbacks.Callback

    class Bursts(base):  # type: ignore[misc]
        """Waits at the boundaries of bursts; see the module's docstring."""

        def __init__(self) -> None:
            super().__init__()
            self._supports_tf_logs = True  # Keras 2 would wait for each step's logs
            self.mark = backend.paced(commands.mark, self)
            self.previous: Optional[int] = None  # first step of the last execution
            self.left = self.done = self.total = self.start_ns = 0
            self.part = 0  # step of the epoch from which on Keras adds up losses
            self.sum = 0.0  # of the losses of epochs that ended within the burst

        def on_train_begin(self, logs: Any = None) -> None:
            waits.start(self.params["steps"] or waits.per_epoch)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if self.previous is None:
                self.begin(batch)
            else:
                self.mark()
                self.count(self.steps_since(self.previous, batch), batch)
            self.previous = batch

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            # Keras begins the next epoch's mean anew.
            steps = (self.params.get("steps") or 0) - self.part
            loss = (logs or {}).get("loss")
            self.sum += float("nan") if loss is None else float(loss) * steps
            self.part = 0

        def steps_since(self, previous: int, batch: int) -> int:
            if batch > previous:
                return batch - previous
            # A new epoch: the last execution of the old one may have been shorter.
            in_epoch: Optional[int] = self.params.get("steps")
            if in_epoch is None:
                return library.steps_per_execution(self.model)
            return in_epoch - previous

        def count(self, steps: int, batch: int) -> None:
            self.done += steps
            self.total += steps
            self.left -= steps
            if self.left <= 0:
                sums = backend.barrier(self.model)
                ns = time.monotonic_ns() - self.start_ns
                wait = waits.take()
                told = wait if wait.batches + wait.firsts else None
                commands.answer(
                    RunResult(
                        ns,
                        steps=self.done,
                        wait=told,
                        mean_loss=self.mean_loss(batch),
                        sums=named(sums),
                    )
                )
                self.begin(batch)

        def mean_loss(self, batch: int) -> float:
            """Of the steps of this burst, as Keras adds them up by itself."""
            total, steps = self.sum, batch - self.part
            if steps > 0:
                backend.before_reset(self.model)
                total += library.mean_loss(self.model) * steps
            return total / self.done

        def begin(self, batch: int) -> None:
            command = commands.next()
            if command is None:
                raise _Leave
            self.left, self.done = command.steps, 0
            self.part, self.sum = batch, 0.0
            waits.take()  # on torch the first batch is here already
            self.start_ns = time.monotonic_ns()

    return Bursts()


def _double_constants(keras: Any, optimizer: Any) -> None:
    """Makes constants double that Keras casts to a dtype: on TensorFlow by float32."""
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
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
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
    return KerasAdapter(Keras3())
