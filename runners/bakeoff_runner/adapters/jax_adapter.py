"""JAX with optax.

What a script has to offer, generated or edited by its user:

- ``load_data(path)``: numpy arrays, rows first, in the order of train_step's last
  arguments, and ``batches(arrays)``: an endless iterator of tuples for ``train_step``;
  a script of the user's own need not define them, nor ``BATCH_SIZE`` (defaults.py);
- ``forward``, ``loss_fn`` and ``make_optimizer() -> optax.GradientTransformation``,
  kept in ``OPTIMIZER``, whose ``update`` the step calls; in a script of the user's own
  the only optimizer of the module may stand in, whatever its name;
- ``init_params(weights)`` (or ``init_params(key)``) and
  ``train_step(params, opt_state, *batch) -> params, opt_state, loss``;
- or, where there is more state than that, ``init_state(weights)`` (or
  ``init_state(key)``), a named tuple or dataclass with the fields ``params``,
  ``opt_state`` and possibly ``stats`` and ``key``, and
  ``train_step(state, *batch) -> state, loss``;
- or, beside them, ``STEPS_PER_CALL`` and ``train_steps``, which takes what ``batches``
  then yields, runs so many steps in one call and returns their losses;
- or, to predict, ``init_params`` and ``predict_step(params, *inputs) -> output`` alone;
- rates of dropout in module constants ``DROPOUT...``, or a function ``dropout``;
- to train on several devices, initial states that lie on all of them, and ``batches``
  that gives arrays of which each device holds its own rows, the first device the first.

``forward`` is called by the names of its arguments: params, stats, key and names that
``train_step`` has too. Parameters are a dict, flat or nested; names are joined by dots
and are the canonical ones, or are mapped by a layout file. The parity proof runs the
body of ``train_step`` with an ``OPTIMIZER`` that takes note of the gradients; `losses`
and `run` use ``train_step`` as it stands. In double precision, and where dropout is
proven, XLA compiles without optimizations (`quick_jit`).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import os
import time
from importlib import metadata
from types import ModuleType
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
from bakeoff_runner.adapters.jax_shared import (
    as_held,
    devices_of,
    gathered,
    jax_arrays,
    jax_compilations,
    jax_device,
    jax_peak,
    moved,
    paced,
    parts_of,
    put,
    quick_jit,
    use_devices,
)
from bakeoff_runner.adapters.silence import SILENT, silent_jax
from bakeoff_runner.calls import losses_of
from bakeoff_runner.defaults import read_inputs, whole_batches
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
    "forward": "forward(params, *inputs)",
    "loss_fn": "loss_fn(params, *inputs)",
    "make_optimizer": "make_optimizer()",
    "init_params": "init_params(weights)",
    "train_step": "train_step(params, opt_state, *batch)",
    "train_steps": "train_steps(params, opt_state, *batches)",
}
_OPTIONS = {
    "donate",
    "steps_per_call",
    "devices",
    "parallel",
    "processes",
    "loops",
    "cache",
    "precision",
    "tf32",
}
# Steps that predict do not depend on each other: JAX may have up to 32 of them under
# way on a CPU, and the last one may be the first to be ready.
_UNDER_WAY = 64


@dataclasses.dataclass
class _State:
    """What a step carries on: params, opt_state and what else the script has."""

    carry: tuple[Any, ...]  # (params, opt_state) or (state,)

    def get(self, field: str) -> Any:
        if len(self.carry) == 2:
            return {"params": self.carry[0], "opt_state": self.carry[1]}.get(field)
        return getattr(self.carry[0], field, None)

    def replace(self, **fields: Any) -> _State:
        if len(self.carry) == 2:
            params, opt_state = self.carry
            return _State(
                (fields.get("params", params), fields.get("opt_state", opt_state))
            )
        (state,) = self.carry
        if hasattr(state, "_replace"):
            return _State((state._replace(**fields),))
        return _State((dataclasses.replace(state, **fields),))


@dataclasses.dataclass
class _Key:
    """A key of random numbers on the host."""

    data: Array
    impl: Any


class JaxAdapter(ArraysAdapter):
    """One build at a time; states are made anew from host arrays when needed."""

    def __init__(self) -> None:
        super().__init__()
        self._weights: Optional[dict[str, Array]] = None  # by target, in its layout
        self._with_optimizer = True
        self._predicts = False
        self._generates = False
        self._state: Optional[_State] = None
        self._devices = 1  # that the contender is to train on
        self._splits = False  # parameters are split over them
        self._batch_shardings: list[Any] = []  # of one batch, where there are several
        self._state_shardings: list[Any] = []  # of all leaves of the state
        self._fresh: Any = None  # the initial state on the host
        self._start: Any = None  # and on the device, until a step donates it
        self._proof: Any = None  # compiled
        self._quick = False  # compile for a proof alone
        self._key: Any = None  # of the next proof: what the last one left

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        check_options(options, _OPTIONS, "jax")
        # XLA's CPU client sizes its thread pools by this.
        os.environ["NPROC"] = str(threads)
        import jax
        import numpy
        import optax

        self._devices = int(options.get("devices", "1"))
        self._splits = options.get("parallel", "data") == "fsdp"
        use_devices(self._devices // int(options.get("processes", "1")))

        device = jax.local_devices()[0]
        effective = {
            "threads": threads,
            "processors": len(os.sched_getaffinity(0)),
            "platform": device.platform,
            "device_kind": device.device_kind,
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
        }
        versions = {
            "jax": jax.__version__,
            "jaxlib": metadata.version("jaxlib"),
            "optax": optax.__version__,
            "numpy": numpy.__version__,
        }
        name = "cpu" if device.platform == "cpu" else f"{device.platform}:{device.id}"
        return ImportInfo(versions, name, effective)

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import jax

        self._drop()
        self._dtype = request.dtype
        jax.config.update("jax_enable_x64", request.dtype == "float64")
        script = self._load_script(request)
        self._predicts, self._generates = request.predict, request.generate
        self._provide(
            load_data=functools.partial(read_inputs, self._stated),
            batches=lambda arrays: whole_batches(arrays, script.BATCH_SIZE),
            make_optimizer=(lambda: self._optimizer()) if self._made() else None,
        )
        steps = ["predict_step"] if request.predict else ["train_step", "forward"]
        self._require(_SCRIPT_NAMES, "load_data", "batches", *steps)
        if request.generate:
            self._require(GENERATION_NAMES)
        if not request.predict:
            self._require(_SCRIPT_NAMES, self._calls().name)
        if not request.dropout:
            _no_dropout(script)
        self._with_optimizer = request.train
        if request.train:
            self._require(_SCRIPT_NAMES, "make_optimizer")
        self._data = self._arrays(request, "jax", self._dtype)
        self._weights = self._read_weights(request)
        self._state = self._initial()
        self._check_weights()
        self._state_shardings = [
            getattr(leaf, "sharding", None)
            for leaf in jax.tree_util.tree_leaves(self._state.carry)
        ]
        self._fresh, self._start = _to_host(self._state.carry), None
        if not request.predict:
            self._check_placed()
        masks = request.dropout and self._state.get("key") is not None
        self._quick = request.dtype == "float64" or masks
        return self._effective()

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        import numpy as np

        batch = self._rows(request.first, request.count)
        if self._generates:
            assert self._state is not None
            params = self._state.get("params")
            return prove_generation(self._the_script(), params, batch[0], np.array)
        if self._predicts:
            found = self._prediction_activations(batch) if request.activations else {}
            return {"output": self._prediction(batch), **found}
        state = self._again()
        if self._key is not None:
            state = state.replace(key=self._key)
        given = None
        if request.grads_in is not None:
            self._need_optimizer()
            given = self._gradients(state, read_safetensors(request.grads_in))
        output, loss, grads, after = self._prove(state, batch, given)
        self._key = after.get("key")
        tensors = {"output": self._canonical_output(output), "loss": np.array(loss)}
        tensors.update(self._canonical_all("grad", grads))
        if after.get("stats") is not None:
            tensors.update(self._canonical_all("buffer", after.get("stats")))
        if given is not None:
            tensors.update(self._canonical_all("update", after.get("params")))
        if request.activations:
            tensors.update(self._activations(state, batch))
        self._state, self._batches = self._again(), None
        return tensors

    def losses(self, steps: int) -> LossesResult:
        import jax

        self._need_optimizer()
        self._batches = None
        carry = self._again().carry
        calls, batches = self._calls(), self._stream()
        step = calls.function
        if self._dtype == "float64" and hasattr(step, "lower"):
            step = quick_jit(step)
        kept: list[Any] = []
        pace = paced(lambda: None, kept, self._devices)
        start = time.monotonic_ns()
        *carry, loss = step(*carry, *next(batches))
        kept.append(loss)
        jax.block_until_ready((carry, loss))
        first = time.monotonic_ns()
        for _ in range(calls.count(steps) - 1):
            *carry, loss = step(*carry, *next(batches))
            kept.append(loss)
            pace()
        jax.block_until_ready((carry, loss))
        end = time.monotonic_ns()
        self._state = _State(tuple(carry))
        self._check_state("parameters after a step are")
        losses = [float(x) for loss in kept for x in losses_of(loss)]
        return LossesResult(losses[:steps], first - start, end - start)

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        import jax

        assert self._state is not None
        if self._predicts:
            return self._predict(steps, mark)
        self._need_optimizer()
        calls, batches = self._calls(), self._stream()
        step, count = calls.function, calls.count(steps)
        if SILENT and self._devices > 1:
            step = silent_jax(step)
        batches.take()
        kept: list[Any] = []
        mark = paced(mark, kept, self._devices)
        if len(self._state.carry) == 2:
            params, opt_state = self._state.carry
            start = time.monotonic_ns()
            for _ in range(count):
                params, opt_state, loss = step(params, opt_state, *next(batches))
                kept.append(loss)
                mark()
            jax.block_until_ready((params, opt_state, loss))
            self._state = _State((params, opt_state))
        else:
            (state,) = self._state.carry
            start = time.monotonic_ns()
            for _ in range(count):
                state, loss = step(state, *next(batches))
                kept.append(loss)
                mark()
            jax.block_until_ready((state, loss))
            self._state = _State((state,))
        end = time.monotonic_ns()
        losses = [x for loss in kept for x in losses_of(loss).tolist()]
        return RunResult(
            end - start,
            losses[-1],
            count * calls.steps,
            batches.take(),
            losses=losses,
            sums=self._sums(),
        )

    def _sums(self) -> dict[str, float]:

        assert self._state is not None
        params = _leaves(self._state.get("params"))
        return {
            name: float(gathered(params[entry.target]).sum())
            for name, (entry, _) in self._names.items()
            if entry.target in params
        }

    def restore(self) -> None:
        import jax

        self._state = self._again()
        jax.block_until_ready(self._state.carry)

    def nudge(self, changes: Mapping[str, Array]) -> None:
        import jax

        assert self._state is not None
        by_target = {
            self._names[name][0].target: to_framework(array, self._names[name][0])
            for name, array in changes.items()
        }
        params = self._state.get("params")
        leaves, structure = jax.tree_util.tree_flatten_with_path(params)
        changed = []
        for path, leaf in leaves:
            change = by_target.pop(_dotted(path), None)
            if change is not None:
                leaf = moved(leaf, change.astype(leaf.dtype))
            changed.append(leaf)
        if by_target:
            raise AdapterError(
                f"the model of {self._file()} trains no '{min(by_target)}'"
            )
        params = jax.tree_util.tree_unflatten(structure, changed)
        self._state = self._state.replace(params=params)

    def allocator_peak(self) -> Peak:
        return jax_peak()

    def compilations(self) -> int:
        return jax_compilations()

    # The build.

    def _drop(self) -> None:
        self._drop_script()
        self._state = self._batches = self._weights = None
        self._fresh = self._start = None
        self._data, self._names, self._output_perm = (), {}, None
        self._proof = self._key = None
        self._batch_shardings, self._state_shardings = [], []

    def _initial(self) -> _State:
        """The state before the first step; every call makes new arrays."""
        script = self._the_script()
        whole = callable(getattr(script, "init_state", None))
        if not whole:
            self._require(_SCRIPT_NAMES, "init_params")
        made = self._initialise(script.init_state if whole else script.init_params)
        state = _State((made,)) if whole else _State((made, None))
        if whole and state.get("params") is None:
            raise AdapterError(f"the state of {self._file()} has no field params")
        if self._weights is not None:
            state = state.replace(params=self._filled(state.get("params")))
            if state.get("stats") is not None:
                state = state.replace(stats=self._filled(state.get("stats")))
        if self._with_optimizer:
            optimizer = self._optimizer()
            state = state.replace(opt_state=optimizer.init(state.get("params")))
        return self._on_all(state) if self._devices > 1 else state

    def _on_all(self, state: _State) -> _State:
        """What has no place yet, such as optax's counter, on all devices."""
        import jax
        from jax.sharding import NamedSharding, PartitionSpec

        leaves = jax.tree_util.tree_leaves(state.get("params"))
        mesh = getattr(leaves[0].sharding, "mesh", None) if leaves else None
        if mesh is None or state.get("opt_state") is None:
            return state
        everywhere = NamedSharding(mesh, PartitionSpec())
        opt_state = jax.tree_util.tree_map(
            lambda leaf: put(leaf, everywhere) if devices_of(leaf) == 1 else leaf,
            state.get("opt_state"),
        )
        return state.replace(opt_state=opt_state)

    def _placed(self, arrays: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
        """Each array where its sharding says, if that is on several devices."""
        return [
            array
            if sharding is None or len(sharding.device_set) == 1
            else put(array, sharding)
            for array, sharding in zip(arrays, shardings)
        ]

    def _check_placed(self) -> None:
        """That the script uses as many devices as its contender is to; notes where."""
        self._check_state("the initial parameters are")
        if self._devices == 1:
            return
        from jax.sharding import NamedSharding, PartitionSpec

        given = next(self._stream())
        self._batches = None
        for array in given[: len(self._data)]:
            parts = parts_of(array)
            check_devices(self._file(), self._devices, parts, "rows of a batch are")
            sharding = array.sharding
            if self._calls().steps > 1 and isinstance(sharding, NamedSharding):
                spec = PartitionSpec(*sharding.spec[1:])
                sharding = NamedSharding(sharding.mesh, spec)
            self._batch_shardings.append(sharding)

    def _check_state(self, what: str) -> None:
        import jax

        assert self._state is not None
        leaves = jax.tree_util.tree_leaves(self._state.get("params"))
        for count in sorted(set(map(devices_of, leaves))):
            check_devices(self._file(), self._devices, count, what)
        if self._splits:
            parts = max(map(parts_of, leaves), default=1)
            check_devices(self._file(), self._devices, parts, f"parts of {what}")

    def _again(self) -> _State:
        """The initial state; in new arrays where a step has donated the last ones."""
        import jax

        leaves = jax.tree_util.tree_leaves(self._start)
        if self._start is None or any(
            leaf.is_deleted() for leaf in leaves if hasattr(leaf, "is_deleted")
        ):
            made = _to_device(self._fresh)
            if self._devices > 1:
                leaves, structure = jax.tree_util.tree_flatten(made)
                placed = self._placed(leaves, self._state_shardings)
                made = jax.tree_util.tree_unflatten(structure, placed)
            self._start = tuple(made)
        return _State(self._start)

    def _initialise(self, init: Callable[..., Any]) -> Any:
        import jax

        parameters = list(inspect.signature(init).parameters.values())
        needed = [p for p in parameters if p.default is p.empty]
        if not needed:
            return init()
        if needed[0].name in ("key", "rng", "seed_key"):
            return init(jax.random.key(getattr(self._the_script(), "SEED", 0)))
        if self._weights is None:
            raise AdapterError(
                f"{init.__name__}({needed[0].name}) of {self._file()} needs a weights "
                "file"
            )
        return init(dict(self._weights))

    def _filled(self, tree: Any) -> Any:
        """The tree with its leaves replaced by the weights file's."""
        import jax
        import jax.numpy as jnp

        weights = self._weights or {}
        leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
        filled = []
        for path, leaf in leaves:
            name = _dotted(path)
            value = weights.get(name)
            if value is None:
                raise AdapterError(
                    f"the model of {self._file()} has '{name}', the workload has not"
                )
            if tuple(leaf.shape) != value.shape:
                raise AdapterError(
                    f"'{name}' of {self._file()} has shape {list(leaf.shape)}, "
                    f"the workload's has {list(value.shape)}"
                )
            # What the script stores in half precision stays so.
            dtype = value.dtype if self._dtype == "float64" else leaf.dtype
            made = jnp.array(value, dtype)
            filled += self._placed([made], [getattr(leaf, "sharding", None)])
        return jax.tree_util.tree_unflatten(structure, filled)

    def _check_weights(self) -> None:
        assert self._state is not None
        have = {**_leaves(self._state.get("params")), **_leaves(self._stats())}
        if not self._names:
            self._names = {
                name: (LayoutEntry(name), tuple(leaf.shape))
                for name, leaf in have.items()
            }
        for entry, _ in self._names.values():
            if entry.target not in have:
                raise AdapterError(
                    f"the model of {self._file()} has no '{entry.target}'"
                )

    def _stats(self) -> Any:
        assert self._state is not None
        stats = self._state.get("stats")
        return {} if stats is None else stats

    def _made(self) -> Optional[str]:
        """The name of the optimizer that the step uses: OPTIMIZER, or the only one."""
        import optax

        script = self._the_script()
        if hasattr(script, "OPTIMIZER"):
            return "OPTIMIZER"
        kinds = (optax.GradientTransformation, optax.GradientTransformationExtraArgs)
        names = [n for n, value in vars(script).items() if isinstance(value, kinds)]
        return names[0] if self._stated and len(names) == 1 else None

    def _optimizer(self) -> Any:
        name, script = self._made(), self._the_script()
        return getattr(script, name) if name else script.make_optimizer()

    def _effective(self) -> dict[str, Any]:
        import jax

        script = self._the_script()
        assert self._state is not None
        step = script.predict_step if self._predicts else script.train_step
        params = jax.tree_util.tree_leaves(self._state.get("params"))
        effective: dict[str, Any] = {
            "batch": getattr(script, "BATCH_SIZE", None),
            "parameters": sum(int(p.size) for p in params),
            "device": str(min(params[0].devices(), key=lambda device: device.id))
            if params
            else "cpu",
            "devices": devices_of(params[0]) if params else 1,
            "dtype": str(params[0].dtype) if params else self._dtype,
            "jit": hasattr(step, "lower"),
            "donate": "donate_arg" in _source(step),
            **self._calls().effective(),
            "matmul_precision": str(jax.config.jax_default_matmul_precision),
        }
        if self._devices > 1:
            split = max(map(parts_of, params), default=1) > 1
            effective["parallel"] = "fsdp" if split else "data"
            if SILENT and split:
                raise AdapterError(
                    "parallel = fsdp: XLA divides arithmetic by what devices exchange; "
                    "without it a step would compute something else"
                )
            if SILENT:
                effective["communication"] = "off"
            effective["master_weights"] = "+".join(
                sorted({str(p.dtype) for p in params})
            )
        if self._with_optimizer:
            _, _, expression = _source(script.make_optimizer).partition("return ")
            effective["optimizer"] = " ".join(expression.split())
        return effective

    # State and data.

    def _need_optimizer(self) -> None:
        if not self._with_optimizer:
            raise AdapterError("this build has no optimizer")

    def _held_by_devices(self, stream: Iterator[Any]) -> Iterator[Any]:
        if self._devices == 1:
            return stream
        rows = 0 if self._calls().steps == 1 else 1
        return (tuple(as_held(array, rows) for array in given) for given in stream)

    def _rows(self, first: int, count: int) -> tuple[Any, ...]:
        import jax.numpy as jnp

        rows = min((len(array) for array in self._data), default=0)
        check_rows(first, count, rows)
        batch = [a[first : first + count] for a in self._data]
        if self._batch_shardings:
            return tuple(self._placed(batch, self._batch_shardings))
        return tuple(jnp.array(array) for array in batch)

    def _canonical_all(self, kind: str, tree: Any) -> dict[str, Array]:
        leaves = _leaves(tree)
        return {
            f"{kind}/{name}": to_canonical(gathered(leaves[entry.target]), entry, shape)
            for name, (entry, shape) in self._names.items()
            if entry.target in leaves
        }

    def _gradients(self, state: _State, given: Mapping[str, Array]) -> Any:
        import jax
        import jax.numpy as jnp

        by_target = {}
        for name, (entry, _) in self._names.items():
            if name in given:
                value = to_framework(given[name], entry).astype(self._dtype)
                by_target[entry.target] = jnp.array(value)
        params = state.get("params")
        leaves, structure = jax.tree_util.tree_flatten_with_path(params)
        grads = []
        for path, _ in leaves:
            if _dotted(path) not in by_target:
                raise AdapterError(f"no gradient is given for '{_dotted(path)}'")
            grads.append(by_target[_dotted(path)])
        return jax.tree_util.tree_unflatten(structure, grads)

    def transfer(self) -> Optional[Transfer]:
        import jax

        return None if jax.devices()[0].platform == "cpu" else self._transfer()

    def _transfer(self) -> Transfer:
        """What the script's iterator gives tells where its arrays are."""
        import jax

        given = next(self._stream())
        if any(isinstance(array, jax.Array) for array in given):
            return time_data(jax_device(), self._data)
        return time_batch(jax_device(), list(given), self._calls().steps)

    def state(self) -> dict[str, Array]:
        assert self._state is not None
        trees = (self._state.get("params"), self._stats())
        named = [self._canonical_all("state", tree) for tree in trees]
        state = {n.partition("/")[2]: a for part in named for n, a in part.items()}
        average = _average(self._state.get("opt_state"))
        if average is not None:
            state.update(self._canonical_all("ema", average))
        return state

    def rates(self, steps: Sequence[int]) -> Optional[list[float]]:
        """Those of the script's function."""
        rate = getattr(self._the_script(), "learning_rate", None)
        return None if rate is None else [float(rate(step)) for step in steps]

    def request(self) -> Callable[[], None]:
        import jax

        if self._generates:
            script, stream = self._the_script(), self._stream()
            assert self._state is not None
            model = self._state.get("params")
            return word_request(script, model, stream, jax.block_until_ready)
        return predict_request(
            self._predict_step(), self._stream(), jax.block_until_ready
        )

    def _predict_step(self) -> Callable[..., Any]:
        """Of inputs alone."""
        assert self._state is not None
        script, params = self._the_script(), self._state.get("params")
        return functools.partial(script.predict_step, params)

    def _predict(self, steps: int, mark: Callable[[], None]) -> RunResult:
        import jax

        outputs: collections.deque[Any] = collections.deque(maxlen=_UNDER_WAY)
        predict_step = self._the_script().predict_step

        def step(*batch: Any) -> Any:
            assert self._state is not None  # another one after each nudge
            outputs.append(predict_step(self._state.get("params"), *batch))
            return outputs[-1]

        return predict_burst(
            step,
            self._stream(),
            steps,
            mark,
            lambda _: jax.block_until_ready(list(outputs)),
            jax_arrays(),
        )

    # The proof.

    def _prediction(self, batch: tuple[Any, ...]) -> Array:
        """By the step as it is timed."""
        import numpy as np

        assert self._state is not None
        output = self._the_script().predict_step(self._state.get("params"), *batch)
        return self._canonical_output(joined(output, np.array))

    def _arguments(
        self, function: Callable[..., Any], state: _State, batch: tuple[Any, ...]
    ) -> list[Any]:
        """The arguments of forward or loss_fn, by their names."""
        step = list(inspect.signature(self._the_script().train_step).parameters)
        known = dict(zip(step[len(state.carry) :], batch))
        for field in ("params", "stats", "key"):
            if state.get(field) is not None:
                known[field] = state.get(field)
        arguments = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in known:
                arguments.append(known[parameter.name])
            elif parameter.default is parameter.empty:
                raise AdapterError(
                    f"{self._file()}: '{parameter.name}' of {function.__name__} is no "
                    "argument of train_step"
                )
        return arguments

    def _prove(
        self, state: _State, batch: tuple[Any, ...], given: Any
    ) -> tuple[Any, Any, Any, _State]:
        """Prediction, loss, gradients and the state after an update from `given`."""
        import jax

        def proof(carry: Any, batch: Any, given: Any) -> Any:
            state = _State(tuple(carry))
            output = self._output(state, batch)
            loss, grads, after = self._one_step(state, batch, given)
            return output, loss, grads, after.carry

        if self._proof is None:
            self._proof = (quick_jit if self._quick else jax.jit)(proof)
        try:
            made = self._proof(state.carry, batch, given)
        except jax.errors.ConcretizationTypeError:  # the step is no pure function
            made = proof(state.carry, batch, given)
        output, loss, grads, carry = made
        return output, loss, grads, _State(tuple(carry))

    def _output(self, state: _State, batch: tuple[Any, ...]) -> Any:
        forward = self._the_script().forward
        output = forward(*self._arguments(forward, state, batch))
        while isinstance(output, tuple):  # (prediction, stats), (prediction, target)
            output = output[0]
        return output

    def _activations(self, state: _State, batch: tuple[Any, ...]) -> dict[str, Array]:
        return self._layers(
            lambda params: self._output(state.replace(params=params), batch),
            state.get("params"),
        )

    def _prediction_activations(self, batch: tuple[Any, ...]) -> dict[str, Array]:
        assert self._state is not None
        step = self._the_script().predict_step
        step = getattr(step, "__wrapped__", step)
        return self._layers(
            lambda params: step(params, *batch), self._state.get("params")
        )

    def _layers(self, model: Callable[[Any], Any], params: Any) -> dict[str, Array]:
        """The first value that depends on all parameters of a layer, op by op."""
        import jax

        leaves, _ = jax.tree_util.tree_flatten_with_path(params)
        layer_of = {e.target: n.rpartition(".")[0] for n, (e, _) in self._names.items()}
        owners = [layer_of.get(_dotted(path), "") for path, _ in leaves]
        needed = {
            owner: {i for i, o in enumerate(owners) if o == owner} for owner in owners
        }
        closed = jax.make_jaxpr(model)(params)
        values: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))
        values.update(zip(closed.jaxpr.invars, [leaf for _, leaf in leaves]))
        sources = {variable: {i} for i, variable in enumerate(closed.jaxpr.invars)}
        found: dict[str, Array] = {}

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else values[atom]

        for equation in closed.jaxpr.eqns:
            known = [a for a in equation.invars if not hasattr(a, "val")]
            depends = set().union(*(sources.get(a, set()) for a in known))
            bound = equation.primitive.get_bind_params(equation.params)
            # JAX before 0.10 has the functions apart.
            functions, settings = bound if isinstance(bound, tuple) else ((), bound)
            made = equation.primitive.bind(
                *functions, *map(read, equation.invars), **settings
            )
            made = made if equation.primitive.multiple_results else [made]
            for variable, value in zip(equation.outvars, made):
                values[variable], sources[variable] = value, depends
            for owner, all_of_it in needed.items():
                if owner and owner not in found and all_of_it <= depends:
                    found[owner] = gathered(max(made, key=lambda v: v.size))
        return {f"activation/{owner}": value for owner, value in found.items()}

    def _canonical_output(self, output: Any) -> Array:
        return super()._canonical_output(gathered(output))

    def _one_step(
        self, state: _State, batch: tuple[Any, ...], grads: Any
    ) -> tuple[Any, Any, _State]:
        """Loss, gradients and next state of the script's step.

        `grads`, if given, take the place of the gradients in the update.
        """
        import optax

        script = self._the_script()
        name = self._made()
        if name is None or not self._with_optimizer:
            return self._plain_step(state, batch, grads)
        original = getattr(script, name)
        seen = []

        def update(updates: Any, *rest: Any, **more: Any) -> Any:
            seen.append(updates)
            return original.update(updates if grads is None else grads, *rest, **more)

        recorder = optax.GradientTransformation(original.init, update)
        setattr(script, name, recorder)
        try:
            body = getattr(script.train_step, "__wrapped__", script.train_step)
            *carry, loss = body(*state.carry, *batch)
        finally:
            setattr(script, name, original)
        if len(seen) != 1:
            raise AdapterError(
                f"train_step of {self._file()} does not call {name}.update once"
            )
        return loss, seen[0], _State(tuple(carry))

    def _plain_step(
        self, state: _State, batch: tuple[Any, ...], grads: Any
    ) -> tuple[Any, Any, _State]:
        """The same from loss_fn and make_optimizer, for scripts without OPTIMIZER."""
        import jax
        import optax

        self._require(_SCRIPT_NAMES, "loss_fn")
        loss_fn = self._the_script().loss_fn
        has_aux = state.get("stats") is not None
        value, mine = jax.value_and_grad(loss_fn, has_aux=has_aux)(
            *self._arguments(loss_fn, state, batch)
        )
        loss, after = value if has_aux else (value, None)
        following = state.replace(stats=after) if has_aux else state
        if self._with_optimizer:
            updates, opt_state = self._optimizer().update(
                mine if grads is None else grads,
                state.get("opt_state"),
                state.get("params"),
            )
            params = optax.apply_updates(state.get("params"), updates)
            following = following.replace(params=params, opt_state=opt_state)
        return loss, mine, following


def _average(opt_state: Any) -> Any:
    """The averages of weights that the optimizer keeps; None: it keeps none."""
    import jax

    def keeps(part: Any) -> bool:
        return hasattr(part, "average")

    parts = jax.tree_util.tree_leaves(opt_state, is_leaf=keeps)
    return next((part.average for part in parts if keeps(part)), None)


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(
        str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", part))))
        for part in path
    )


def _leaves(tree: Any) -> dict[str, Any]:
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_dotted(path): leaf for path, leaf in leaves}


def _to_host(tree: Any) -> Any:
    """A copy that no step can donate; keys of random numbers as their bits."""
    import jax
    import numpy as np

    def copy(leaf: Any) -> Any:
        if _is_key(leaf):
            return _Key(np.array(jax.random.key_data(leaf)), jax.random.key_impl(leaf))
        return gathered(leaf) if hasattr(leaf, "dtype") else leaf

    return jax.tree_util.tree_map(copy, tree)


def _to_device(tree: Any) -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    def place(leaf: Any) -> Any:
        if isinstance(leaf, _Key):
            return jax.random.wrap_key_data(jnp.array(leaf.data), impl=leaf.impl)
        return jnp.array(leaf) if isinstance(leaf, np.ndarray) else leaf

    return jax.tree_util.tree_map(place, tree)


def _is_key(leaf: Any) -> bool:
    import jax

    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def _source(function: Any) -> str:
    try:
        return inspect.getsource(getattr(function, "__wrapped__", function))
    except (OSError, TypeError):
        return ""


def _no_dropout(script: ModuleType) -> None:
    for name, value in vars(script).items():
        if name.startswith("DROPOUT") and isinstance(value, float):
            setattr(script, name, 0.0)
    if callable(getattr(script, "dropout", None)):

        def dropout(key: Any, x: Any, *rest: Any, **options: Any) -> Any:
            return x

        script.dropout = dropout  # type: ignore[attr-defined]


def probe(probe: Probe) -> None:
    """What the environment holds that is named after it (see probe.py)."""
    probe.load_framework("jax")
    import jax

    probe.say("devices", " ".join(sorted({d.platform for d in jax.devices()})))
    probe.say("threads", len(os.sched_getaffinity(0)))
    x64 = jax.config.jax_enable_x64
    probe.say("build", f"backend={jax.default_backend()}; x64={x64}")
    probe.say("BLAS", "Eigen within XLA; OpenBLAS of scipy for LAPACK")
    probe.load_if_there("optax")
    probe.load_if_there("keras", KERAS_BACKEND="jax")


def make() -> Adapter:
    return JaxAdapter()
