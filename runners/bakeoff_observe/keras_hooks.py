"""What is seen of a script of Keras 3, on any backend, and its switches.

`fit` is a loop of Keras's own: the script has no line in it where a step ends, and what
ends one differs by backend. Here are the places that Keras 3 has for it; what Keras 2
shares is in keras_shared.py. On JAX the variables are empty while `fit` runs, as a
state is carried from step to step, so values are read from that state.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Iterator

from bakeoff_observe.keras_shared import KerasHooks
from bakeoff_observe.observer import Hooks
from bakeoff_observe.values import leaves, plain

if TYPE_CHECKING:
    from bakeoff_observe.process import Process

now = time.monotonic_ns


class Keras3Hooks(KerasHooks):
    data_kinds: ClassVar[dict[str, str]] = {
        "ArrayDataAdapter": "ndarray",
        "TFDatasetAdapter": "tf.data",
        "TorchDataLoaderAdapter": "DataLoader",
        "PyDatasetAdapter": "PyDataset",
        "GeneratorDataAdapter": "generator",
        "GrainDatasetAdapter": "grain",
    }

    def install(self) -> None:
        trainers = importlib.import_module(
            f"keras.src.backend.{self.backend()}.trainer"
        )
        callbacks = importlib.import_module("keras.src.callbacks.callback_list")
        base = importlib.import_module("keras.src.optimizers.base_optimizer")
        trainer = _owner(self.keras.Model, "fit")
        self._eager = self.eagerness()
        self.watch_fit(trainer, callbacks.CallbackList)
        self.watch_compile(_owner(self.keras.Model, "compile"))
        self.watch_optimizers(base.BaseOptimizer, "apply")
        self.watch_data(trainers)
        config, mixed = self.keras.config, self.keras.mixed_precision
        places = [(config, "set_floatx"), (self.keras.backend, "set_floatx")]
        places += [(config, "set_dtype_policy"), (mixed, "set_dtype_policy")]
        self.throw_dtypes([*places, (mixed, "set_global_policy")])
        self.observer.barriers.append(self.barrier)

    def backend(self) -> str:
        return str(self.keras.backend.backend())

    def eagerness(self) -> Callable[[], bool]:
        if self.backend() == "tensorflow":
            context = importlib.import_module("tensorflow.python.eager.context")
            executing: Callable[[], bool] = context.executing_eagerly
            return executing
        if self.backend() == "jax":
            core = importlib.import_module("jax._src.core")
            clean: Callable[[], bool] = core.trace_state_clean
            return clean
        compiling = importlib.import_module("torch").compiler.is_compiling
        return lambda: not compiling()

    def eager(self) -> bool:
        return self._eager()

    # ---- data

    def watch_data(self, trainers: Any) -> None:
        iterators = importlib.import_module("keras.src.trainers.epoch_iterator")
        epochs = iterators.EpochIterator
        make = epochs.__init__

        @functools.wraps(make)
        def made(iterator: Any, *args: Any, **kwargs: Any) -> None:
            make(iterator, *args, **kwargs)
            iterator.observed = self.opened(iterator, iterator.data_adapter)

        epochs.__init__ = made
        utils: Any = importlib.import_module(
            "keras.src.trainers.data_adapters.data_adapter_utils"
        )
        specify = utils.get_tensor_spec

        @functools.wraps(specify)
        def specified(batches: Any) -> Any:
            """TensorFlow's shapes of generators leave the batch open."""
            if self.depth == 1 and batches and not (self.source or {}).get("batch"):
                self.came(batches[0])
            return specify(batches)

        utils.get_tensor_spec = specified
        names = {"jax": "JAXEpochIterator", "torch": "TorchEpochIterator"}
        if self.backend() in names:
            self.watch_batches(getattr(trainers, names[self.backend()]))

    def watch_batches(self, epochs: Any) -> None:
        source = epochs._get_iterator
        cached = "cached_batch" in self.process.switches

        def get(iterator: Any) -> Any:
            found = source(iterator)
            if not getattr(iterator, "observed", False):
                return found
            return _Timed(self, iterator, found, cached)

        epochs._get_iterator = get

    def read(self, adapter: Any) -> dict[str, Any]:
        found: dict[str, Any] = {
            "batch": adapter.batch_size,
            "batches": adapter.num_batches,
        }
        try:
            if adapter.has_partial_batch and adapter.batch_size:
                found["partial"] = adapter.partial_batch_size / adapter.batch_size
        except NotImplementedError:  # of a generator nobody knows
            pass
        dataset = getattr(adapter, "py_dataset", None)
        if dataset is not None:
            found["workers"] = dataset.workers
            found["multiprocessing"] = bool(dataset.use_multiprocessing)
        return found

    # ---- what is computed

    def barrier(self) -> None:
        """What `fit` made last; of TensorFlow and torch their own hooks know."""
        state = getattr(self.model, "_jax_state", None)
        for hooks in self.process.hooks:
            if hooks.name == "jax" and state:
                # Keras keeps it in containers of its own, of which JAX knows nothing.
                hooks.block(leaves(state))  # type: ignore[attr-defined]

    def values(self, variables: list[Any]) -> list[Any]:
        """In `fit` on JAX the variables are empty: a state holds what they were."""
        import numpy

        state = getattr(self.model, "_jax_state", None) or {}
        held: dict[int, Any] = {}
        for word in ("trainable_variables", "optimizer_variables"):
            owner = self.model if word == "trainable_variables" else self.optimizer_()
            mine = list(getattr(owner, word.removeprefix("optimizer_"), []))
            held |= {id(v): x for v, x in zip(mine, state.get(word) or [])}
        convert = self.keras.ops.convert_to_numpy
        return [
            numpy.asarray(held[id(v)]) if id(v) in held else convert(v)
            for v in variables
        ]

    def optimizer_(self) -> Any:
        return getattr(self.model, "optimizer", None)

    def optimizer(self, optimizer: Any) -> dict[str, Any]:
        found = {"class": type(optimizer).__name__}
        found |= {
            key: plain(value)
            for key, value in vars(optimizer).items()
            if key[0] != "_"
            and key != "built"
            and isinstance(value, (bool, int, float, type(None)))
        }
        rate = optimizer._learning_rate
        if hasattr(rate, "dtype"):
            return {**found, "lr": float(self.values([rate])[0])}
        found["schedule"] = type(rate).__name__
        return {**found, "lr": float(self.keras.ops.convert_to_numpy(rate(0)))}

    def compiled(self, model: Any) -> dict[str, Any]:
        return {
            "run_eagerly": bool(model.run_eagerly) or self.functions_run_eagerly(),
            "jit_compile": bool(model.jit_compile),
            "steps_per_execution": int(model.steps_per_execution),
        }

    def functions_run_eagerly(self) -> bool:
        if self.backend() != "tensorflow":
            return False
        tensorflow = importlib.import_module("tensorflow")
        return bool(tensorflow.config.functions_run_eagerly())

    def device(self, variables: list[Any]) -> str:
        if self.backend() == "jax":
            jax = importlib.import_module("jax")
            return str(jax.default_backend())
        device = str(getattr(getattr(variables[0], "value", None), "device", "cpu"))
        return device.rsplit("device:", 1)[-1].split(":")[0].lower()

    # ---- switches

    def jit(self, switch: str, inner: Any, model: Any, asked: dict[str, Any]) -> None:
        inner(model, **asked)
        before = bool(model.jit_compile)
        model.jit_compile = self.jit_wanted(switch)
        if bool(model.jit_compile) != before:
            self.process.threw(switch)


class _Timed:
    """The batches of an epoch, and how long `fit` waits for each."""

    def __init__(
        self, hooks: Keras3Hooks, epochs: Any, source: Any, cached: bool
    ) -> None:
        self._hooks, self._epochs, self._source = hooks, epochs, source
        self._cached = cached

    def __iter__(self) -> Iterator[Any]:
        observer = self._hooks.observer
        since, before = now(), observer.waiting
        made = self.again() if self._cached else iter(self._source)
        observer.waiting = before + now() - since
        return self.timed(made)

    def timed(self, made: Iterator[Any]) -> Iterator[Any]:
        observer, known = self._hooks.observer, False
        while True:
            since, before = now(), observer.waiting
            try:
                batch = next(made)
            except StopIteration:
                return
            finally:  # a loader of another framework may have counted it, too
                observer.waiting = before + now() - since
            if not known:
                known = True
                self._hooks.came(batch)
            yield batch

    def again(self) -> Iterator[Any]:
        """The first batch of all, as often as there are batches."""
        epochs = self._epochs
        if not hasattr(epochs, "first_batch"):
            for batch in self._source:
                epochs.first_batch = batch
                self._hooks.process.threw("cached_batch")
                break
            else:
                return iter(())
        count = epochs._num_batches
        if count is None:
            return itertools.repeat(epochs.first_batch)
        return itertools.repeat(epochs.first_batch, count)


def _owner(kind: Any, name: str) -> Any:
    return next(base for base in kind.__mro__ if name in base.__dict__)


def install(module: ModuleType, process: Process) -> Hooks:
    if str(getattr(module, "__version__", "")).startswith("2."):
        from bakeoff_observe import tf_keras_hooks

        return tf_keras_hooks.install(module, process)
    hooks = Keras3Hooks("keras", module, process)
    hooks.install()
    return hooks
