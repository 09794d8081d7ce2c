"""What is seen of Keras 2 and Keras 3 alike, and the switches that both have.

A step ends after each execution of `fit` and each `train_on_batch`; in a loop of the
script's own, with an optimizer that is applied outside of any compiled function. An
execution may be several steps, and the last one of an epoch may be shorter: steps are
counted by the batches that it took. `fit` also costs something around its steps
(iterators, callbacks, validation), so what belongs to an epoch is settled before the
next part begins, or validation would wait for the steps and be charged with them.
"""

from __future__ import annotations

import functools
import gc
import importlib
import time
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Optional

from bakeoff_observe.functions import words_of
from bakeoff_observe.observer import Facts, Hooks
from bakeoff_observe.values import (
    Leader,
    described,
    given,
    leaves,
    plain,
    processors,
    tiny_share,
)

if TYPE_CHECKING:
    from bakeoff_observe.process import Process


now = time.monotonic_ns
JIT = ("jit_compile", "no_jit_compile")  # switches


class StepLoss:
    """The loss of the steps since the last mean; Keras tells only the epoch's mean."""

    __slots__ = ("before", "mean", "n", "n_before")

    def __init__(self, mean: Any, n: float, before: Any, n_before: float) -> None:
        self.mean, self.n, self.before, self.n_before = mean, n, before, n_before

    def __float__(self) -> float:
        mean = float(self.mean)
        if self.n <= self.n_before or self.n_before == 0:
            return mean
        total = mean * self.n - float(self.before) * self.n_before
        return total / (self.n - self.n_before)


class KerasHooks(Hooks):
    """Subclasses say where a version of Keras has its places."""

    data_kinds: ClassVar[dict[str, str]] = {}

    def __init__(self, name: str, keras: Any, process: Process) -> None:
        super().__init__(name, str(getattr(keras, "__version__", "?")))
        self.keras, self.process, self.observer = keras, process, process.observer
        self.model: Any = None  # that was trained last
        self.optimizers: list[Any] = []  # of loops of the script's own
        self.traced: list[Any] = []  # and those in compiled functions
        self.leader = Leader()
        self.predicting: Any = None  # a model that only predicts, and what it is given
        self.depth = 0  # a callback may call `fit` of another model
        self.fitted: dict[str, Any] = {}  # facts of the last `fit`
        self.source: Any = None  # what it reads
        self.metrics: list[str] = []  # of the last `compile`
        self._reader: Any = None
        self._computes = False  # a step may still do so
        self._running = False  # whether it tells the mean of the epoch
        self._mean: Any = None
        self._n = 0.0

    # ---- where a version differs

    def backend(self) -> str:
        return "tensorflow"

    def eager(self) -> bool:
        """Whether what is called now is computed now."""
        raise NotImplementedError

    def values(self, variables: list[Any]) -> list[Any]:
        """As arrays of NumPy."""
        return [variable.numpy() for variable in variables]

    def compiled(self, model: Any) -> dict[str, Any]:
        """run_eagerly, jit_compile and steps_per_execution."""
        raise NotImplementedError

    def read(self, adapter: Any) -> dict[str, Any]:
        """Facts of a data adapter: batch, batches, partial, inputs, workers."""
        raise NotImplementedError

    # ---- steps

    def watch_fit(self, trainer: Any, lists: Any) -> None:
        fit, one, observer = trainer.fit, trainer.train_on_batch, self.observer
        own_step = trainer.train_step
        switches = self.process.switches

        @functools.wraps(fit)
        def watched(model: Any, *args: Any, **kwargs: Any) -> Any:
            asked = given(fit, args, kwargs)
            if asked is None or self.depth:
                return self.within(model, fit, args, kwargs)
            for name, change in FIT_SWITCHES.items():
                if name in switches and change(self, asked):
                    self.process.threw(name)
            observer.count("fits")
            if "direct_fit" in switches and small_fit(asked):
                self.process.threw("direct_fit")
                return self.direct_fit(model, asked)
            self.model, self.source = model, None
            self.fitted = self.arguments(asked)
            self._running = type(model).train_step is own_step
            return self.within(model, fit, (), asked)

        @functools.wraps(one)
        def once(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = self.within(model, one, args, kwargs)
            if self.depth == 0 and self.leader(model):
                if self.model is not model or observer.kind == "call":
                    self.model, self.source = model, None
                    self.fitted = self.of_batch(given(one, args, kwargs) or {})
                observer.loss = _first(made)
                observer.boundary("fit")
            return made

        trainer.fit, trainer.train_on_batch = watched, once
        for name in ("predict", "evaluate", "predict_on_batch", "test_on_batch"):
            self.watch_predicting(trainer, name)
        if "direct_predict" in switches:
            self.throw_direct_predict(trainer)
        if "predict_batch" in switches:
            self.throw_predict_batch(trainer, int(switches["predict_batch"]))
        self.watch_callbacks(lists)

    def watch_predicting(self, trainer: Any, name: str) -> None:
        """Where nothing trains, such calls count, of the model that is called first."""
        inner, observer = getattr(trainer, name), self.observer

        @functools.wraps(inner)
        def watched(model: Any, *args: Any, **kwargs: Any) -> Any:
            if observer.inside or observer.kind not in ("", "call"):
                self.settle()
                since = now()
                try:
                    return inner(model, *args, **kwargs)
                finally:
                    if observer.inside and name == "evaluate":  # of `fit`
                        spent = observer.spent.get("validation", 0)
                        observer.spent["validation"] = spent + now() - since
            made = self.within(model, inner, args, kwargs)
            if self.predicting is None:
                of = self.of_batch(given(inner, args, kwargs) or {})
                self.predicting = model, of
            if self.predicting[0] is model:
                observer.boundary("call")
            return made

        setattr(trainer, name, watched)

    def direct_fit(self, model: Any, asked: dict[str, Any]) -> Any:
        """One epoch of one batch, without all that `fit` sets up."""
        model.reset_metrics()
        kept = {k: asked[k] for k in ("sample_weight", "class_weight") if k in asked}
        logs = model.train_on_batch(asked["x"], asked["y"], return_dict=True, **kept)
        history = self.keras.callbacks.History()
        history.epoch, history.history = [0], {k: [v] for k, v in logs.items()}
        model.history = history
        return history

    def throw_direct_predict(self, trainer: Any) -> None:
        inner = trainer.predict

        @functools.wraps(inner)
        def predict(model: Any, *args: Any, **kwargs: Any) -> Any:
            asked = given(inner, args, kwargs)
            if asked is None or not one_batch(asked) or asked.get("callbacks"):
                return inner(model, *args, **kwargs)
            self.process.threw("direct_predict")
            return model.predict_on_batch(asked["x"])

        trainer.predict = predict

    def throw_predict_batch(self, trainer: Any, size: int) -> None:
        inner = trainer.predict

        @functools.wraps(inner)
        def predict(model: Any, *args: Any, **kwargs: Any) -> Any:
            asked = given(inner, args, kwargs)
            if not asked or one_batch(asked) or not hasattr(asked.get("x"), "shape"):
                return inner(model, *args, **kwargs)
            self.process.threw("predict_batch")
            return inner(model, **{**asked, "batch_size": size})

        trainer.predict = predict

    def within(self, model: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Nothing else ends a step in there."""
        self.depth += 1
        self.observer.inside = True
        try:
            return function(model, *args, **kwargs)
        finally:
            self.depth -= 1
            self.observer.inside = self.depth > 0

    def settle(self) -> None:
        """Once an epoch has no more batches: what its steps compute belongs to them,
        and not to the validation that would wait for it."""
        observer = self.observer
        if self.depth == 1 and self._computes and observer.kind == "fit":
            self._computes = False
            for barrier in observer.barriers:
                barrier()
            observer.marks[-1] = now()

    def watch_callbacks(self, lists: Any) -> None:
        begin, end, over, observer = (
            lists.on_epoch_begin,
            lists.on_train_batch_end,
            lists.on_epoch_end,
            self.observer,
        )

        @functools.wraps(over)
        def finished(callbacks: Any, epoch: int, logs: Any = None) -> None:
            self.settle()
            over(callbacks, epoch, logs)

        @functools.wraps(begin)
        def begun(callbacks: Any, epoch: int, logs: Any = None) -> None:
            if self.depth == 1:
                self._n = 0.0
                self.specified()
                observer.epoch(of_fit=True)
            begin(callbacks, epoch, logs)

        @functools.wraps(end)
        def ended(callbacks: Any, batch: int, logs: Any = None) -> None:
            end(callbacks, batch, logs)
            if self.depth == 1:
                mean = logs.get("loss") if logs else None
                if mean is not None and self._running:
                    n = self.weight(batch)
                    observer.loss = StepLoss(mean, n, self._mean, self._n)
                    self._mean, self._n = mean, n
                else:
                    observer.loss = mean
                observer.boundary("fit")
                self._computes = bool(observer.marks)  # none are there after a report

        lists.on_epoch_begin, lists.on_train_batch_end = begun, ended
        lists.on_epoch_end = finished

    def weight(self, batch: int) -> float:
        """How many whole batches the epoch had by the end of this one."""
        source = self.source or {}
        if source.get("partial") and batch + 1 >= (source.get("batches") or 1 << 60):
            return float(source["batches"] - 1 + source["partial"])
        return float(batch + 1)

    def watch_optimizers(self, base: Any, name: str) -> None:
        apply, observer = getattr(base, name), self.observer

        @functools.wraps(apply)
        def applied(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            done = apply(optimizer, *args, **kwargs)
            if observer.inside:
                return done
            eager = self.eager()
            known = self.optimizers if eager else self.traced
            if not any(optimizer is one for one in known):
                known.append(optimizer)
            step = observer.tracing
            if step is not None:
                if not eager and self.leader(optimizer):
                    step.end("optimizer")
            elif eager and self.leader(optimizer):
                observer.boundary("optimizer")
            return done

        setattr(base, name, applied)

    def watch_compile(self, trainer: Any) -> None:
        inner, switches = trainer.compile, self.process.switches

        @functools.wraps(inner)
        def watched(model: Any, *args: Any, **kwargs: Any) -> Any:
            asked = given(inner, args, kwargs)
            if asked is None:
                return inner(model, *args, **kwargs)
            if "no_eager" in switches and asked.get("run_eagerly"):
                asked["run_eagerly"] = False
                self.process.threw("no_eager")
            if "steps_per_execution" in switches:
                steps = int(switches["steps_per_execution"])
                if (
                    self.backend() != "torch"
                    and asked.get("steps_per_execution") != steps
                ):
                    asked["steps_per_execution"] = steps
                    self.process.threw("steps_per_execution")
            metrics = asked.get("metrics")
            self.metrics = [_named(m) for m in leaves(metrics) if m is not None]
            if "no_metrics" in switches and metrics:
                asked["metrics"] = None
                self.process.threw("no_metrics")
            wanted = [name for name in JIT if name in switches]
            if wanted and not asked.get("run_eagerly"):
                return self.jit(wanted[0], inner, model, asked)
            return inner(model, **asked)

        trainer.compile = watched
        if "no_eager" in switches:
            self.ignore_eager(trainer)

    def jit(self, switch: str, inner: Any, model: Any, asked: dict[str, Any]) -> None:
        """Calls `compile` with jit_compile as the switch says."""
        raise NotImplementedError

    def jit_wanted(self, switch: str) -> bool:
        return switch == "jit_compile" and bool(self.process.switches[switch])

    def throw_dtypes(self, places: list[tuple[Any, str]]) -> None:
        """Setters of a default dtype do not take what a switch replaces."""
        if not {"float32", "no_mixed"} & set(self.process.switches):
            return
        for place, name in places:
            inner = getattr(place, name, None)
            if inner is not None:
                setattr(place, name, self.single(inner))

    def single(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def checked(asked: Any, *args: Any, **kwargs: Any) -> Any:
            name = str(getattr(asked, "name", asked))
            for switch, begin in (("float32", "float64"), ("no_mixed", "mixed_")):
                if switch in self.process.switches and name.startswith(begin):
                    self.process.threw(switch)
                    return None
            return inner(asked, *args, **kwargs)

        return checked

    def ignore_eager(self, trainer: Any) -> None:
        eager = trainer.run_eagerly

        def assign(model: Any, value: Any) -> None:
            if value:
                self.process.threw("no_eager")
            eager.fset(model, False)

        trainer.run_eagerly = property(eager.fget, assign)

    # ---- the switch `graph`, in a loop of the script's own on TensorFlow

    def graph_model(self) -> bool:
        """Calls the trained model, and its optimizers, as graphs from now on."""
        if self.backend() != "tensorflow" or not self.optimizers:
            return False
        model = self.find_model()
        if model is None or "call" in model.__dict__:
            return False
        self.graph_method(model, "call", self.graph_of)
        for optimizer in self.optimizers:
            self.graph_method(optimizer, self.applies, self.graph_updates)
        return True

    def graph_method(self, owner: Any, name: str, make: Callable[..., Any]) -> None:
        """Calls a graph in the method's place; the method itself, once that fails."""
        inner = getattr(owner, name)
        graph = make(owner, inner)

        @functools.wraps(inner)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not self.eager():
                return inner(*args, **kwargs)
            try:
                made = graph(*args, **kwargs)
            except Exception as error:
                owner.__dict__.pop(name, None)
                where = f"{type(owner).__name__}.{name}"
                self.observer.notes.append(f"{where}: {words_of(error)}")
                return inner(*args, **kwargs)
            self.process.threw("graph")
            return made

        # Past the tracking of attributes.
        owner.__dict__[name] = called

    def graph_of(self, owner: Any, inner: Callable[..., Any]) -> Any:
        tf = importlib.import_module("tensorflow")
        return tf.function(inner, reduce_retracing=True)

    def graph_updates(self, optimizer: Any, inner: Callable[..., Any]) -> Any:
        """`apply` of Keras 3, `apply_gradients` of Keras 2: the variables stay."""
        tf = importlib.import_module("tensorflow")
        known: dict[tuple[int, ...], Any] = {}

        def called(given: Any, *args: Any, **kwargs: Any) -> Any:
            if "trainable_variables" in kwargs:
                args = (kwargs.pop("trainable_variables"), *args)
            gradients, variables, rest = self.split(given, args)
            key = tuple(map(id, variables))
            if key not in known:
                if len(known) == 4:
                    raise ValueError("it is given other variables again and again")

                def updates(gradients: Any) -> None:
                    inner(*self.joined(gradients, variables), *rest, **kwargs)

                known[key] = tf.function(updates, autograph=False)
            known[key](gradients)
            if not self.observer.inside and self.leader(optimizer):
                self.observer.boundary("optimizer")
            return optimizer.iterations

        return called

    applies = "apply"

    def split(self, given: Any, args: Any) -> tuple[list[Any], list[Any], Any]:
        """Gradients, variables and what else an optimizer is given."""
        return list(given), list(args[0]) if args else [], args[1:]

    def joined(self, gradients: list[Any], variables: list[Any]) -> tuple[Any, ...]:
        """The arguments that were split."""
        return (gradients, variables) if variables else (gradients,)

    # ---- facts

    def arguments(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What `fit` was told."""
        callbacks = asked.get("callbacks") or []
        if not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        validation = asked.get("validation_data") is not None
        return {
            "callbacks": [type(callback).__name__ for callback in callbacks],
            "validation": validation or bool(asked.get("validation_split")),
            "validation_freq": plain(asked.get("validation_freq", 1)),
            "verbose": plain(asked.get("verbose", "auto")),
            "shuffle": plain(asked.get("shuffle", True)),
            "epochs": plain(asked.get("epochs", 1)),
            "workers": plain(asked.get("workers", 1)),
            "class_weight": asked.get("class_weight") is not None,
        }

    def of_batch(self, asked: dict[str, Any]) -> dict[str, Any]:
        tensors = [x for x in leaves(asked.get("x")) if hasattr(x, "dtype")]
        inputs = [described(x) for x in tensors]
        batch = (
            {"batch": inputs[0]["shape"][0]} if inputs and inputs[0]["shape"] else {}
        )
        return {"data": "train_on_batch", "inputs": inputs, **batch}

    def opened(self, reader: Any, adapter: Any) -> bool:
        """Whether this is the first reader that a `fit` makes: of what it trains on."""
        if self.depth != 1 or self.source is not None or self.model is None:
            return False
        name = type(adapter).__name__
        self.source = {"data": self.data_kinds.get(name, name)}
        self._reader = reader
        try:
            self.source.update(self.read(adapter))
        except Exception as error:  # a fact that cannot be had is no fact
            self.observer.notes.append(f"{self.name}: {name}: {error!r}")
        return True

    def specified(self) -> None:
        """Shapes of a batch that a tf.data pipeline brings."""
        reader, self._reader = self._reader, None
        for word in ("_distributed_dataset", "_dataset"):
            dataset = getattr(reader, word, None)
            if dataset is not None and hasattr(dataset, "element_spec"):
                self.came(dataset.element_spec)
                return

    def came(self, batch: Any) -> None:
        """A batch, or what is known of one."""
        x = batch[0] if isinstance(batch, (tuple, list)) and batch else batch
        inputs = [described(v) for v in leaves(x) if hasattr(v, "dtype")]
        if self.source is not None and inputs and inputs[0]["shape"]:
            size = inputs[0]["shape"][0] or self.source.get("batch")
            for one in inputs:
                one["shape"] = [size, *one["shape"][1:]]
            self.source["inputs"], self.source["batch"] = inputs, size

    def trained(self) -> list[Any]:
        """The variables that are trained."""
        if self.model is not None:
            return list(self.model.trainable_variables)
        return [v for o in self.optimizers for v in self.variables_of(o)]

    def variables_of(self, optimizer: Any) -> list[Any]:
        """Those that an optimizer trains."""
        return list(getattr(optimizer, "_trainable_variables", None) or [])

    def find_model(self) -> Any:
        """The outermost model that holds what optimizers train."""
        trained = {id(v) for v in self.trained()}
        holders = [
            model
            for model in gc.get_objects()
            if issubclass(type(model), self.keras.Model)
            and any(id(v) in trained for v in model.trainable_variables)
        ]
        # What a Sequential makes of itself is no model of the script's.
        parts = {id(vars(model).get("_functional")) for model in holders}
        outer = [model for model in holders if id(model) not in parts]
        return max(outer, key=lambda m: len(m.trainable_variables), default=None)

    def facts(self) -> Optional[Facts]:
        if self.observer.kind == "call" and self.predicting is not None:
            self.model, self.fitted = self.predicting
            self.source = {}  # nothing is read by batches
        if self.model is None and not self.optimizers:
            return None
        found = Facts(threads=processors())
        found.update(self.of_backend())
        found.update(backend=self.backend(), **self.fitted)
        found.update(self.source or {})
        found.pop("partial", None)
        variables = self.trained()
        sizes = [_size(v.shape) for v in variables]
        found["parameters"], found["parameter_tensors"] = sum(sizes), len(sizes)
        found["dtypes"] = sorted({described(v)["dtype"] for v in variables})
        found["device"] = self.device(variables)
        model = self.model if self.model is not None else self.find_model()
        optimizers = self.optimizers
        if model is not None:
            layers = list(model._flatten_layers())
            names = [type(layer).__name__ for layer in layers]
            found["model"], found["layers"] = type(model).__name__, len(names)
            found["convolutions"] = sum("Conv" in name for name in names)
            policies = {self.policy(layer) for layer in layers}
            found["dtype_policy"] = "+".join(sorted(p for p in policies if p))
            found["layout"] = self.keras.backend.image_data_format()
        if self.model is not None:
            found["loss"] = _named(getattr(model, "loss", None))
            found.update(self.logits(model))
            found.update(self.compiled(model))
            found["metrics"] = self.metrics
            found["fits_per_step"] = self.observer.per_step("fits")
            spent = self.observer.spent.get("validation", 0)
            found["validation_s"] = 1e-9 * spent / max(1, len(self.observer.marks))
            trains = getattr(model, "optimizer", None)
            optimizers = [trains] if trains is not None else []
        found["optimizers"] = [self.optimizer(o) for o in optimizers]
        found["denormals"] = tiny_share(self.values(variables))
        return found

    def logits(self, model: Any) -> dict[str, bool]:
        """Whether a cross entropy is told what the model's last layer makes."""
        loss, layers = getattr(model, "loss", None), getattr(model, "layers", None)
        if not layers or len(getattr(model, "outputs", None) or []) != 1:
            return {}
        last = getattr(model, "operations", layers)[-1]
        if "crossentropy" not in _named(loss).replace("_", "").lower():
            return {}
        activation = getattr(last, "activation", None)
        name = getattr(activation, "__name__", "linear") if activation else ""
        if type(last).__name__ == "Softmax":
            name = "softmax"
        known = vars(loss).get("_fn_kwargs") if hasattr(loss, "__dict__") else None
        takes = bool((known or {}).get("from_logits", False))
        takes = takes or bool(getattr(loss, "from_logits", False))
        if name in ("softmax", "sigmoid") and takes:
            if self.backend() == "tensorflow":  # where Keras takes its inputs
                return {}
            return {"double_softmax": True}
        return {"missing_softmax": True} if name == "linear" and not takes else {}

    def of_backend(self) -> dict[str, Any]:
        """What the framework below knows, such as threads and loaders."""
        for hooks in self.process.hooks:
            if hooks.name == self.backend():
                return hooks.facts() or {}
        return {}

    def device(self, variables: list[Any]) -> str:
        return "cpu"

    def policy(self, layer: Any) -> str:
        return str(getattr(getattr(layer, "dtype_policy", None), "name", ""))

    def optimizer(self, optimizer: Any) -> dict[str, Any]:
        settings = dict(optimizer.get_config())
        rate = settings.pop("learning_rate", None)
        found: dict[str, Any] = {"class": type(optimizer).__name__}
        if isinstance(rate, dict):
            found["schedule"] = rate.get("class_name", "?")
            rate = optimizer._learning_rate(optimizer.iterations)
        found["lr"] = float(rate)
        settings.pop("name", None)
        return found | {key: plain(value) for key, value in settings.items()}


def one_batch(asked: dict[str, Any]) -> bool:
    """Of `fit` or `predict`: whether an array is no more than one batch."""
    shape = getattr(asked.get("x"), "shape", None)
    if not shape or asked.get("steps") or asked.get("steps_per_epoch"):
        return False
    return int(shape[0]) <= int(asked.get("batch_size") or 32)


def small_fit(asked: dict[str, Any]) -> bool:
    """Whether it does what `train_on_batch` does."""
    if asked.get("epochs", 1) != 1 or asked.get("initial_epoch"):
        return False
    if asked.get("callbacks") or asked.get("validation_data") is not None:
        return False
    if asked.get("validation_split") or asked.get("y") is None:
        return False
    return one_batch(asked)


def _size(shape: Any) -> int:
    size = 1
    for n in shape:
        size *= int(n)
    return size


def _first(made: Any) -> Any:
    """The loss of what `train_on_batch` returns."""
    if isinstance(made, dict):
        return made.get("loss")
    return made[0] if isinstance(made, (list, tuple)) and made else made


def _named(loss: Any) -> str:
    if isinstance(loss, dict):
        loss = list(loss.values())
    if isinstance(loss, (list, tuple)):
        return "+".join(_named(part) for part in loss)
    if loss is None or isinstance(loss, str):
        return loss or ""
    return str(getattr(loss, "__name__", type(loss).__name__))


def _no_callbacks(hooks: KerasHooks, asked: dict[str, Any]) -> bool:
    return bool(asked.pop("callbacks", None))


def _no_validation(hooks: KerasHooks, asked: dict[str, Any]) -> bool:
    """The part that `validation_split` keeps back stays untrained."""
    some = asked.get("validation_data") is not None or asked.get("validation_split")
    if some:
        asked["validation_freq"] = 1 << 40
    return bool(some)


def _batch(hooks: KerasHooks, asked: dict[str, Any]) -> bool:
    sizes = hooks.process.switches["batch"]
    if asked.get("batch_size", 32) != int(sizes["from"]):
        return False
    if not hasattr(asked.get("x"), "shape"):
        return False
    asked["batch_size"] = int(sizes["to"])
    return True


def _silent(hooks: KerasHooks, asked: dict[str, Any]) -> bool:
    before, asked["verbose"] = asked.get("verbose", "auto"), 0
    return bool(before != 0)


FIT_SWITCHES: dict[str, Callable[[KerasHooks, dict[str, Any]], bool]] = {
    "no_callbacks": _no_callbacks,
    "no_validation": _no_validation,
    "silent": _silent,
    "batch": _batch,
}
