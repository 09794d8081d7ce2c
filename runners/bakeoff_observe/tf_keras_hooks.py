"""What is seen of a script of Keras 2, and its switches."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from bakeoff_observe.keras_shared import KerasHooks
from bakeoff_observe.observer import Hooks

if TYPE_CHECKING:
    from bakeoff_observe.process import Process


class Keras2Hooks(KerasHooks):
    data_kinds: ClassVar[dict[str, str]] = {
        "TensorLikeDataAdapter": "ndarray",
        "GenericArrayLikeDataAdapter": "array-like",
        "ListsOfScalarsDataAdapter": "lists",
        "CompositeTensorDataAdapter": "composite",
        "DatasetAdapter": "tf.data",
        "GeneratorDataAdapter": "generator",
        "KerasSequenceAdapter": "Sequence",
    }

    def install(self) -> None:
        self._context = importlib.import_module("tensorflow.python.eager.context")
        training = self.module("engine.training")
        self.watch_fit(training.Model, self.module("callbacks").CallbackList)
        self.watch_compile(training.Model)
        self.variables: dict[int, list[Any]] = {}  # by optimizers
        for where, kind, build in (
            ("optimizers.optimizer", "Optimizer", "build"),
            ("optimizers.legacy.optimizer_v2", "OptimizerV2", "_create_all_weights"),
        ):
            base = getattr(self.module(where), kind)
            self.watch_optimizers(base, "apply_gradients")
            self.watch_builds(base, build)
        self.watch_data(self.module("engine.data_adapter").DataHandler)
        mixed = self.keras.mixed_precision
        places = [(self.keras.backend, "set_floatx"), (mixed, "set_global_policy")]
        self.throw_dtypes(places)

    def module(self, name: str) -> Any:
        package = self.keras.__name__
        try:
            return importlib.import_module(f"{package}.src.{name}")
        except ImportError:  # before 2.13
            return importlib.import_module(f"{package}.{name}")

    def eager(self) -> bool:
        return bool(self._context.executing_eagerly())

    def watch_data(self, handlers: Any) -> None:
        make = handlers.__init__

        @functools.wraps(make)
        def made(handler: Any, *args: Any, **kwargs: Any) -> None:
            make(handler, *args, **kwargs)
            self.opened(handler, handler._adapter)

        handlers.__init__ = made

    def read(self, adapter: Any) -> dict[str, Any]:
        batch, batches = adapter.batch_size(), adapter.get_size()
        if batch is None:  # of generators
            batch = getattr(adapter, "_first_batch_size", None)
        found: dict[str, Any] = {
            "batch": None if batch is None else int(batch),
            "batches": None if batches is None else int(batches),
        }
        if batch and adapter.has_partial_batch():
            found["partial"] = int(adapter.partial_batch_size()) / int(batch)
        return found

    def watch_builds(self, base: Any, name: str) -> None:
        """An optimizer of Keras 2 does not keep the variables that it trains."""
        build = getattr(base, name)

        @functools.wraps(build)
        def built(optimizer: Any, variables: Any) -> Any:
            self.variables[id(optimizer)] = variables = list(variables)
            return build(optimizer, variables)

        setattr(base, name, built)

    def variables_of(self, optimizer: Any) -> list[Any]:
        return self.variables.get(id(optimizer), [])

    applies = "apply_gradients"

    def split(self, given: Any, args: Any) -> tuple[list[Any], list[Any], Any]:
        pairs = list(given)
        return [g for g, _ in pairs], [v for _, v in pairs], args

    def joined(self, gradients: list[Any], variables: list[Any]) -> tuple[Any, ...]:
        return (list(zip(gradients, variables)),)

    def compiled(self, model: Any) -> dict[str, Any]:
        steps = model._steps_per_execution
        return {
            "run_eagerly": bool(model.run_eagerly),
            "jit_compile": bool(model._jit_compile),
            "steps_per_execution": 1 if steps is None else int(steps),
        }

    def device(self, variables: list[Any]) -> str:
        device = str(variables[0].device) if variables else "cpu"
        return device.rsplit("device:", 1)[-1].split(":")[0].lower()

    def policy(self, layer: Any) -> str:
        return str(getattr(getattr(layer, "_dtype_policy", None), "name", ""))

    def jit(self, switch: str, inner: Any, model: Any, asked: dict[str, Any]) -> None:
        wanted = self.jit_wanted(switch)
        if bool(asked.get("jit_compile")) != wanted:
            asked["jit_compile"] = wanted
            self.process.threw(switch)
        inner(model, **asked)


def install(module: ModuleType, process: Process) -> Hooks:
    hooks = Keras2Hooks(module.__name__, module, process)
    hooks.install()
    return hooks
