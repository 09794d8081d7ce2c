"""PyTorch.

What a script has to offer, generated or edited by its user:

- ``make_model() -> nn.Module``: on its device, in training mode;
- ``make_optimizer(model) -> torch.optim.Optimizer``;
- one of ``train_epoch(model, optimizer, batches)`` and ``loss_fn(output, target)`` (see
  torch_steps.py), or ``train_step(model, optimizer, *inputs) -> loss``, which
  zeroes the gradients, calls the model, goes backward and calls ``optimizer.step()``
  once;
- ``load_data(path)``: a tuple of tensors, one per input, rows first, and
  ``batches(*tensors)``: an endless iterator of tuples for ``train_step``; a script of
  the user's own need not define them, nor ``BATCH_SIZE`` (defaults.py);
- where a step is more than a call of ``train_step``, ``GraphedStep(model, optimizer)``:
  what it makes is called with the inputs, trains one step and returns the loss;
- where the loss is scaled, the module's ``scaler``, a ``torch.amp.GradScaler``;
- where ``load_data`` gives samples as they are stored, ``transform(*tensors)`` that
  makes inputs of them.

A script that predicts has instead of the optimizer and the training step

- ``predict_step(model, *inputs) -> output``; ``make_model`` gives the model in
  inference mode.

The names of the model's parameters and buffers are the canonical ones, or are mapped
by a layout file. In double precision, and where dropout is proven, every step runs
eagerly (``model.compile`` is passed over): compiled anew it would prove no more. In
single precision the proof, `losses` and `run` use it as it stands.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Sequence,
)

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
from bakeoff_runner.adapters.torch_shared import (
    limit_threads,
    stay_eager,
    torch_arrays,
    torch_compilations,
    torch_device,
    torch_peak,
)
from bakeoff_runner.adapters.torch_steps import Epoch, default_step, run_epoch
from bakeoff_runner.defaults import read_inputs, whole_batches
from bakeoff_runner.generation import (
    GENERATION_NAMES,
    prove_generation,
    word_request,
)
from bakeoff_runner.layout import (
    LayoutEntry,
    by_order,
    entry_for,
    read_layout,
    to_canonical,
    to_framework,
)
from bakeoff_runner.pipeline import (
    TimedBatches,
    batches_per_epoch,
    digest,
    endless,
)
from bakeoff_runner.prediction import (
    PREDICTION_NAMES,
    joined,
    predict_burst,
    predict_request,
)
from bakeoff_runner.probe import Probe
from bakeoff_runner.script import (
    ScriptAdapter,
    check_options,
    check_rows,
)
from bakeoff_runner.tensors import read_safetensors
from bakeoff_runner.transfers import time_batch, time_data

if TYPE_CHECKING:
    import torch

_SCRIPT_NAMES = {
    **PREDICTION_NAMES,
    "make_model": "make_model()",
    "make_optimizer": "make_optimizer(model)",
    "train_step": "train_step(model, optimizer, *inputs)",
    "load_data": "load_data(path)",
    "batches": "batches(*tensors)",
}
_OPTIONS = {
    "compile",
    "channels_last",
    "optimizer_impl",
    "cuda_allocator",
    "input",
    "workers",
    "cache",
    "precision",
    "scaler",
    "tf32",
    "devices",
    "parallel",
}
_ALLOCATORS = {
    "expandable_segments": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
}
_MOST_SCHEDULED = 100_000  # steps that a scheduler of a script's own is asked for
_HALVINGS = 24  # of a loss scale, after which a step is certain


class TorchAdapter(ScriptAdapter):
    """One build at a time; its initial state is kept so that it can be restored."""

    def __init__(self) -> None:
        self._dtype: Any = None
        self._model: Any = None
        self._replica: Any = None  # what train_step calls
        self._optimizer: Any = None
        self._with_optimizer = True
        self._predicts = False
        self._generates = False
        self._data: tuple[Any, ...] = ()
        self._batches: Optional[TimedBatches] = None
        self._step: Optional[Callable[..., Any]] = None  # of the optimizer's steps
        self._held: dict[str, Any] = {}  # what the workload freezes, and a library has
        self._initial: dict[str, Any] = {}
        self._walked: Optional[dict[str, Any]] = None
        self._scale: Optional[dict[str, Any]] = None  # initial state of the scaler
        # Canonical name -> where it is kept, and its canonical shape.
        self._names: dict[str, tuple[LayoutEntry, tuple[int, ...]]] = {}
        self._functional: dict[str, Any] = {}  # what stands in for it draws no masks
        self._trained: dict[str, Any] = {}  # canonical name -> parameter
        self._dropout = False

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        check_options(options, _OPTIONS, "torch")
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        allocator = options.get("cuda_allocator", "default")
        if allocator in _ALLOCATORS:
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = _ALLOCATORS[allocator]
        import numpy
        import torch

        limit_threads(threads)
        cuda = torch.cuda.is_available()
        if not cuda:
            _refuse_what_needs_a_gpu(options)
        versions = {"torch": torch.__version__, "numpy": numpy.__version__}
        effective: dict[str, Any] = {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            **_build_flags(torch.__config__.show(), torch.__config__.parallel_info()),
        }
        if cuda:
            versions["cuda"] = str(torch.version.cuda)
            effective["gpu"] = torch.cuda.get_device_name(0)
            effective["cuda_allocator"] = torch.cuda.get_allocator_backend()
        return ImportInfo(versions, "cuda:0" if cuda else "cpu", effective)

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import torch

        self._drop()
        torch.manual_seed(1)  # a script's own seed comes after this one
        self._dtype = torch.float64 if request.dtype == "float64" else torch.float32
        torch.set_default_dtype(self._dtype)
        stay_eager(request.dtype == "float64")
        script = self._load_script(request)
        self._predicts, self._generates = request.predict, request.generate
        self._dropout = request.dropout
        step = "predict_step" if request.predict else "train_step"
        self._provide(
            load_data=self._default_data,
            batches=lambda *tensors: whole_batches(tensors, script.BATCH_SIZE),
            train_step=None if request.predict else default_step(script),
        )
        self._require(_SCRIPT_NAMES, "make_model", step, "load_data", "batches")
        if request.generate:
            self._require(GENERATION_NAMES)
        wide = self._dtype == torch.float64 and bool(self._stated)
        with _float64() if wide else nullcontext():
            model = self._model = script.make_model()
        if not isinstance(model, torch.nn.Module):
            raise AdapterError(f"{request.script.name}: make_model() gave no nn.Module")
        if self._dtype == torch.float64:  # else what the script stores in half stays so
            model.to(dtype=self._dtype)
            if wide:
                _widen(model)
        if not self._predicts:  # a script that predicts sets this itself
            model.train()
        if not request.dropout:
            self._no_dropout()
        self._load_weights(request)
        self._load_data(request)
        self._replica = self._distributed(model)
        self._initial = {n: t.detach().clone() for n, t in self._tensors().items()}
        with self._one_walk():
            self._trained = {n: self._tensor(n) for n in self._names if self._moves(n)}
        scaler = getattr(script, "scaler", None)
        self._scale = None if scaler is None else dict(scaler.state_dict())
        self._with_optimizer = request.train
        if request.train:
            self._require(_SCRIPT_NAMES, "make_optimizer")
            self._optimizer = script.make_optimizer(model)
        return self._effective()

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        batch = self._rows(request.first, request.count)
        if self._generates:
            script, model = self._the_script(), self._model
            return prove_generation(script, model, batch[0], _to_host)
        if self._predicts:
            return self._prediction(batch, request.activations)
        self._reset()
        with _eager() if self._dropout else nullcontext():
            tensors = self._one_step(batch, request.activations)
        with self._one_walk():
            for name in self._names:
                if not self._moves(name):
                    tensor = self._tensor(name)
                    tensors[f"buffer/{name}"] = self._canonical(name, tensor)
        if request.grads_in is not None:
            tensors.update(self._update(read_safetensors(request.grads_in)))
        self._reset()
        return tensors

    def losses(self, steps: int) -> LossesResult:
        self._need_optimizer()
        self._reset()
        step, batches = self._training_step(), self._stream()
        kept = []
        start = time.monotonic_ns()
        loss = step(*next(batches))
        kept.append(_copy(loss))
        self._finish()
        first = time.monotonic_ns()
        for _ in range(steps - 1):
            loss = step(*next(batches))
            kept.append(_copy(loss))
        self._finish()
        end = time.monotonic_ns()
        values = [float(loss) for loss in kept]
        return LossesResult(values, first - start, end - start)

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        if self._predicts:
            return predict_burst(
                self._predict_step(),
                self._stream(),
                steps,
                mark,
                lambda _: _barrier(),
                torch_arrays(),
            )
        self._need_optimizer()
        if hasattr(self._the_script(), "train_epoch"):
            return self._run_epoch(steps, mark)
        step, batches = self._training_step(), self._stream()
        keep = _copy if hasattr(self._the_script(), "GraphedStep") else _detached
        kept = []
        batches.take()
        start = time.monotonic_ns()
        for _ in range(steps):
            kept.append(keep(step(*next(batches))))
            mark()
        self._finish()
        return self._result(time.monotonic_ns() - start, batches, kept)

    def _result(self, elapsed: int, batches: Any, kept: Any) -> RunResult:
        losses = _floats(kept)
        return RunResult(
            elapsed,
            losses[-1],
            wait=batches.take(),
            losses=losses,
            sums=dict(zip(self._trained, _sums(self._trained.values()))),
        )

    def _run_epoch(self, steps: int, mark: Callable[[], None]) -> RunResult:
        """A burst is one call of the script's own loop."""
        batches = self._stream()
        rows = steps * int(getattr(self._the_script(), "BATCH_SIZE", 1))
        batches.take()
        start = time.monotonic_ns()
        kept = run_epoch(
            self._the_script(),
            self._replica,
            self._optimizer,
            Epoch(batches, steps, rows, mark),
        )
        self._finish()
        return self._result(time.monotonic_ns() - start, batches, kept)

    def restore(self) -> None:
        import torch

        graphed = hasattr(self._the_script(), "GraphedStep")
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(self._initial[name])
        kept = hasattr(self._optimizer, "schedule") or hasattr(
            self._optimizer, "average"
        )
        if not self._predicts and (kept or not _forget(self._optimizer)):
            if graphed:
                raise AdapterError(
                    f"{self._file()}: the optimizer of a GraphedStep cannot be reset "
                    f"in place: {type(self._optimizer).__name__}"
                )
            self._optimizer = self._the_script().make_optimizer(self._model)
            self._step = None
        if not graphed:
            self._model.zero_grad(set_to_none=True)
        if self._scale is not None:
            self._the_script().scaler.load_state_dict(self._scale)
        _barrier()

    def nudge(self, changes: Mapping[str, Array]) -> None:
        import torch

        with torch.no_grad():
            for name, array in changes.items():
                change = to_framework(array, self._names[name][0])
                mine = self._tensor_named(name)
                mine.add_(_placed_as(mine, torch.from_numpy(change.copy())))

    def _tensor_named(self, name: str) -> Any:
        tensor = self._trained.get(name)
        if tensor is None:
            raise AdapterError(f"the model of {self._file()} trains no '{name}'")
        return tensor

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        self._batches = None
        stream = self._stream()
        hashes = [
            digest([tensor.cpu().numpy() for tensor in next(stream)], row_shapes)
            for _ in range(count)
        ]
        self._batches = None
        return hashes

    def state(self) -> dict[str, Array]:
        tensors = {name: self._tensor(name) for name in self._names}
        average = getattr(self._optimizer, "average", None)
        if average is not None:  # an AveragedModel
            mine = average.module.state_dict()
            for name in self._trained:
                tensors[f"ema/{name}"] = mine[self._names[name][0].target]
        return {
            key: self._canonical(key.removeprefix("ema/"), tensor)
            for key, tensor in tensors.items()
        }

    def rates(self, steps: Sequence[int]) -> Optional[list[float]]:
        """By a fresh scheduler of the script's, stepped as far as it takes."""
        self._need_optimizer()
        optimizer = self._the_script().make_optimizer(self._model)
        schedule = getattr(optimizer, "schedule", None)
        if schedule is None:
            return None
        functions = getattr(schedule, "lr_lambdas", None)
        if functions is not None:
            return [schedule.base_lrs[0] * functions[0](step) for step in steps]
        wanted, last = set(steps), min(max(steps), _MOST_SCHEDULED)
        found: dict[int, float] = {}
        for step in range(last + 1):
            if step in wanted:
                found[step] = schedule.get_last_lr()[0]
            optimizer.step()  # without gradients: nothing happens
            schedule.step()
        return [found.get(step, found[max(found)]) for step in steps]

    def request(self) -> Callable[[], None]:
        if self._generates:
            script, stream = self._the_script(), self._stream()
            return word_request(script, self._model, stream, lambda _: _barrier())
        return predict_request(
            self._predict_step(), self._stream(), lambda _: _barrier()
        )

    def _predict_step(self) -> Callable[..., Any]:
        return partial(self._the_script().predict_step, self._model)

    def allocator_peak(self) -> Peak:
        return torch_peak()

    def compilations(self) -> int:
        return torch_compilations()

    def transfer(self) -> Optional[Transfer]:
        device = next((p.device for p in self._model.parameters()), None)
        if device is None or device.type == "cpu":
            return None
        return self._transfer_to(str(device))

    def _transfer_to(self, name: str) -> Transfer:
        device = torch_device(name)
        if all(tensor.device.type != "cpu" for tensor in self._data):
            return time_data(device, [tensor.cpu().numpy() for tensor in self._data])
        batch = getattr(self._the_script(), "BATCH_SIZE", 1)
        return time_batch(device, [t.cpu().numpy() for t in self._host_rows(0, batch)])

    def close(self) -> None:
        super().close()
        import sys

        compiler = sys.modules.get("torch._inductor.async_compile")
        if compiler is not None:  # its helper processes
            compiler.shutdown_compile_workers()

    # The build.

    def _drop(self) -> None:
        self._drop_script()
        if self._functional:
            import torch

            vars(torch.nn.functional).update(self._functional)
        self._model = self._replica = self._optimizer = self._batches = None
        self._step = None
        self._functional = {}
        self._data, self._initial, self._names, self._held = (), {}, {}, {}
        self._trained = {}

    def _no_dropout(self) -> None:
        import torch

        for module in self._model.modules():
            if isinstance(module, torch.nn.modules.dropout._DropoutNd):
                module.p = 0.0
        # For scripts that call functions with a rate of their own.
        functional = torch.nn.functional
        plain, attention = functional.dropout, functional.scaled_dot_product_attention
        self._functional = {
            "dropout": plain,
            "scaled_dot_product_attention": attention,
        }

        def dropout(input: Any, p: float = 0.5, *rest: Any, **options: Any) -> Any:
            return plain(input, 0.0, *rest, **options)

        def attend(
            query: Any,
            key: Any,
            value: Any,
            attn_mask: Any = None,
            dropout_p: float = 0.0,
            *rest: Any,
            **options: Any,
        ) -> Any:
            return attention(query, key, value, attn_mask, 0.0, *rest, **options)

        functional.dropout, functional.scaled_dot_product_attention = dropout, attend

    def _load_weights(self, request: BuildRequest) -> None:
        import torch

        layout = read_layout(request.layout)
        mine = self._tensors()
        if request.weights is None:
            for name, tensor in mine.items():
                self._names[name] = LayoutEntry(name), tuple(tensor.shape)
            return
        weights = read_safetensors(request.weights)
        if self._stated:
            layout = by_order(_of_peft(mine) | layout, weights, self._shapes())
        for name, array in weights.items():
            entry = entry_for(layout, name)
            tensor = mine.pop(entry.target, None)
            if tensor is None and name in self._stated.frozen:
                tensor = torch.from_numpy(array.copy()).to(self._dtype)
                self._held[entry.target] = tensor
            if tensor is None:
                raise AdapterError(
                    f"the model of {self._file()} has no '{entry.target}'"
                )
            value = to_framework(array, entry)
            if tuple(tensor.shape) != value.shape:
                raise AdapterError(
                    f"'{entry.target}' of {self._file()} has shape "
                    f"{list(tensor.shape)}, the workload's has {list(value.shape)}"
                )
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(value.copy()))
            self._names[name] = entry, tuple(array.shape)
        self._refuse_extra(mine)

    def _shapes(self) -> dict[str, Any]:
        """Of every tensor once, tied ones under their first name."""
        once: dict[int, str] = {}
        for name, tensor in self._tensors().items():
            once.setdefault(tensor.data_ptr(), name)
        return {name: self._tensors()[name].shape for name in once.values()}

    def _default_data(self, path: str) -> tuple[Any, ...]:
        """Tensors on the model's device; integers as torch's losses take them."""
        import torch

        device = next((p.device for p in self._model.parameters()), None)
        tensors = map(torch.from_numpy, read_inputs(self._stated, path))
        return tuple(
            (t if t.is_floating_point() else t.long()).to(device) for t in tensors
        )

    def _refuse_extra(self, left: Mapping[str, Any]) -> None:
        """`left`: what the weights file did not name.

        Tied tensors are no extra, nor are parameters that stay zero: the second bias
        of an LSTM.
        """
        known = {self._tensor(name).data_ptr() for name in self._names}
        for name, tensor in left.items():
            if tensor.data_ptr() not in known and not _constant_zero(tensor):
                raise AdapterError(
                    f"the model of {self._file()} has '{name}', the workload has not"
                )

    def _load_data(self, request: BuildRequest) -> None:
        import torch

        tensors = map(torch.as_tensor, self._loaded(request, "torch"))
        self._data = tuple(map(self._cast, tensors))

    def _effective(self) -> dict[str, Any]:
        import torch

        model = self._model
        effective: dict[str, Any] = {
            "batch": getattr(self._the_script(), "BATCH_SIZE", None),
            "parameters": sum(
                p.numel()
                for p in model.parameters()
                if p.requires_grad or (self._predicts and not _constant_zero(p))
            ),
            "device": str(next((p.device for p in model.parameters()), "cpu")),
            "dtype": str(self._dtype).removeprefix("torch."),
            "compiled": getattr(model, "_compiled_call_impl", None) is not None,
            "channels_last": _channels_last(model),
            "tf32": _tf32(torch),
        }
        if self._optimizer is not None:
            effective["optimizer"] = _describe_optimizer(self._optimizer)
        norms = sorted(
            {
                (type(m).__name__, m.eps, getattr(m, "momentum", None))
                for m in model.modules()
                if hasattr(m, "eps")
            },
            key=str,
        )
        if norms:
            effective["normalisation"] = [
                {"layer": kind, "eps": eps, "momentum": momentum}
                for kind, eps, momentum in norms
            ]
        return effective

    # State.

    def _tensors(self) -> dict[str, Any]:
        """Every parameter and kept buffer, but the counters of BatchNorm."""
        return self._held | {
            name: tensor
            for name, tensor in self._model.state_dict(keep_vars=True).items()
            if not name.endswith("num_batches_tracked")
        }

    @contextmanager
    def _one_walk(self) -> Iterator[None]:
        """For all names that are asked for within; a step may replace tensors."""
        self._walked = self._tensors()
        try:
            yield
        finally:
            self._walked = None

    def _tensor(self, name: str) -> Any:
        walked = self._tensors() if self._walked is None else self._walked
        return walked[self._names[name][0].target]

    def _parameter(self, name: str) -> bool:
        import torch

        return isinstance(self._tensor(name), torch.nn.Parameter)

    def _moves(self, name: str) -> bool:
        """A parameter that is not frozen."""
        return self._parameter(name) and bool(self._tensor(name).requires_grad)

    def _canonical(self, name: str, tensor: Any) -> Array:
        entry, shape = self._names[name]
        return to_canonical(
            _float32_at_least(_full(tensor.detach())).cpu().numpy().copy(), entry, shape
        )

    def _reset(self) -> None:
        """Initial weights and buffers, fresh optimizer, first batch."""
        import torch

        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(self._initial[name])
        self._model.zero_grad(set_to_none=True)
        if self._scale is not None:
            self._the_script().scaler.load_state_dict(self._scale)
        if self._with_optimizer:
            self._optimizer = self._the_script().make_optimizer(self._model)
        self._batches = self._step = None

    def _distributed(self, model: Any) -> Any:
        return model

    def _seen(self, batches: Iterator[Any]) -> Iterator[Any]:
        return batches

    def _finish(self) -> None:
        _barrier()

    def _need_optimizer(self) -> None:
        if not self._with_optimizer:
            raise AdapterError("this build has no optimizer")

    def _training_step(self) -> Callable[..., Any]:
        """One step on a batch: `train_step`, or what the script makes of it."""
        if self._step is None:
            script = self._the_script()
            made = getattr(script, "GraphedStep", None)
            step = partial(script.train_step, self._replica, self._optimizer)
            self._step = made(self._replica, self._optimizer) if made else step
        return self._step

    def _stream(self) -> TimedBatches:
        import torch

        if self._batches is None:
            script = self._the_script()
            made = self._seen(endless(script.batches(*self._data), script, self._data))
            if self._dtype == torch.float64:  # transforms give float32
                made = (tuple(map(self._cast, batch)) for batch in made)
            self._batches = TimedBatches(made, batches_per_epoch(script, self._data))
        return self._batches

    def _cast(self, tensor: Any) -> Any:
        return tensor.to(self._dtype) if tensor.is_floating_point() else tensor

    def _rows(self, first: int, count: int) -> tuple[Any, ...]:
        rows = min((len(tensor) for tensor in self._data), default=0)
        check_rows(first, count, rows)
        device = next((p.device for p in self._model.parameters()), None)
        return tuple(tensor.to(device) for tensor in self._host_rows(first, count))

    def _host_rows(self, first: int, count: int) -> list[Any]:
        """As the training step takes them, where the script keeps them."""
        rows_of = [t[first : first + count] for t in self._data]
        transform = getattr(self._the_script(), "transform", None)
        if callable(transform):
            rows_of = [self._cast(tensor) for tensor in transform(*rows_of)]
        return rows_of

    # The proof.

    def _prediction(
        self, batch: tuple[Any, ...], activations: bool
    ) -> dict[str, Array]:
        """By the step as it is timed; in double precision op by op."""
        seen: dict[str, Any] = {}
        hooks = self._keep_activations(seen) if activations else []
        try:
            output = self._the_script().predict_step(self._model, *batch)
        finally:
            for hook in hooks:
                hook.remove()
        found = {name: _to_host(value) for name, value in seen.items()}
        return {"output": joined(output, _to_host), **found}

    def _one_step(self, batch: tuple[Any, ...], activations: bool) -> dict[str, Array]:
        import torch

        with self._one_walk():
            names = [name for name in self._names if self._parameter(name)]
        if not names:  # so that backward() has something to do
            batch = tuple(
                t.detach().requires_grad_() if t.is_floating_point() else t
                for t in batch
            )
        seen: dict[str, Any] = {}
        outputs: list[Any] = []

        stepped: list[bool] = []

        def keep_gradients(*_: Any) -> None:
            """As they are before they are clipped: the first call counts."""
            if any(key.startswith("grad/") for key in seen):
                return
            with self._one_walk():
                for name in names:
                    grad = self._tensor(name).grad
                    seen[f"grad/{name}"] = None if grad is None else grad.clone()

        def keep_output(output: Any) -> None:
            if isinstance(output, Mapping):  # of transformers, diffusers
                output = next(v for key, v in output.items() if key != "loss")
            outputs.append(output[0] if isinstance(output, tuple) else output)

        def at_step(_: Any, args: Any, options: Any) -> Any:
            stepped.append(True)
            return _with_closure(args, options, keep_gradients)

        model = self._replica
        hooks = self._keep_activations(seen) if activations else []
        if getattr(self._model, "_compiled_call_impl", None) is None:
            hooks.append(
                self._model.register_forward_hook(lambda m, a, out: keep_output(out))
            )
        else:  # a hook would be compiled with it
            model = _Watched(model, keep_output)
        if self._with_optimizer:
            optimizer = self._optimizer
            hooks.append(optimizer.register_step_pre_hook(at_step))
        else:

            def at_no_step() -> None:
                stepped.append(True)
                keep_gradients()

            optimizer = _NoOptimizer(self._model, at_no_step)
        try:
            train_step = self._the_script().train_step
            with _before_clipping(self._the_script(), keep_gradients):
                loss = train_step(model, optimizer, *batch)
                # A scaler passes over steps until its scale is small enough.
                for _ in range(_HALVINGS if self._scale is not None else 0):
                    if stepped:
                        break
                    for key in [key for key in seen if key.startswith("grad/")]:
                        del seen[key]
                    loss = train_step(model, optimizer, *batch)
        finally:
            for hook in hooks:
                hook.remove()
        if not outputs:
            raise AdapterError(f"train_step of {self._file()} does not call its model")
        seen["output"] = _whole(outputs, len(batch[0]))
        if names and f"grad/{names[0]}" not in seen:
            raise AdapterError(
                f"train_step of {self._file()} does not call optimizer.step()"
            )
        loss = _float32_at_least(torch.as_tensor(loss))
        tensors = {"loss": loss.detach().cpu().numpy().copy()}
        for key, tensor in seen.items():
            kind, _, name = key.partition("/")
            if kind != "grad":
                tensors[key] = _float32_at_least(tensor).detach().cpu().numpy().copy()
                continue
            if tensor is None:
                tensor = torch.zeros_like(self._tensor(name))
            tensors[key] = self._canonical(name, tensor)
        return tensors

    def _keep_activations(self, seen: dict[str, Any]) -> list[Any]:
        """Hooks on the layers that hold parameters themselves."""

        def keep(path: str) -> Callable[[Any, Any, Any], None]:
            def hook(module: Any, args: Any, output: Any) -> None:
                if isinstance(output, tuple) and output:  # of a recurrent layer
                    output = output[0]
                if hasattr(output, "detach"):
                    seen[f"activation/{path}"] = output.detach().clone()

            return hook

        return [
            module.register_forward_hook(keep(path))
            for path, module in self._model.named_modules()
            if path and any(True for _ in module.parameters(recurse=False))
        ]

    def _update(self, grads: Mapping[str, Array]) -> dict[str, Array]:
        """The parameters after one update from `grads`, from the initial state."""
        self._need_optimizer()
        self._reset()
        with self._one_walk():
            names = [name for name in self._names if self._parameter(name)]
            self._give(names, grads)
        self._optimizer.step()
        with self._one_walk():
            return {
                f"update/{name}": self._canonical(name, self._tensor(name))
                for name in names
            }

    def _give(self, names: Sequence[str], grads: Mapping[str, Array]) -> None:
        import torch

        for name in names:
            if name not in grads:
                if not self._moves(name):
                    continue
                raise AdapterError(f"no gradient is given for '{name}'")
            parameter = self._tensor(name)
            given = to_framework(grads[name], self._names[name][0]).copy()
            grad = torch.empty_like(parameter)
            grad.copy_(_placed_as(parameter, torch.from_numpy(given)))
            parameter.grad = grad.detach()


@contextmanager
def _before_clipping(script: Any, note: Callable[[], None]) -> Iterator[None]:
    """Calls `note` before gradients are clipped: by torch or by `clip_gradients`."""
    import torch

    utils = torch.nn.utils
    functions = [
        getattr(owner, name)
        for owner, name in (
            (utils, "clip_grad_norm_"),
            (utils, "clip_grad_value_"),
            (script, "clip_gradients"),
        )
        if callable(getattr(owner, name, None))
    ]

    def noting(original: Any) -> Any:
        def clip(*args: Any, **options: Any) -> Any:
            note()
            return original(*args, **options)

        return clip

    places = [
        (owner, name, value)
        for owner in (utils, script)
        for name, value in list(vars(owner).items())
        if any(value is function for function in functions)
    ]
    for owner, name, value in places:
        setattr(owner, name, noting(value))
    try:
        yield
    finally:
        for owner, name, value in places:
            setattr(owner, name, value)


class _Watched:
    """A model whose output is taken note of, without a hook in it."""

    def __init__(self, model: Any, keep: Callable[[Any], None]) -> None:
        self._model = model
        self._keep = keep

    def __call__(self, *args: Any, **options: Any) -> Any:
        output = self._model(*args, **options)
        self._keep(output)
        return output

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class _Nothing:
    def step(self, *_: Any) -> None:
        pass

    update_parameters = step


class _NoOptimizer:
    """Stands in for an optimizer in `train_step` where only gradients are wanted."""

    def __init__(self, model: Any, at_step: Callable[[], None]) -> None:
        self._model = model
        self._at_step = at_step

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._model.zero_grad(set_to_none)

    def __getattr__(self, name: str) -> Any:
        if name in ("schedule", "average"):  # that nothing comes of
            return _Nothing()
        raise AttributeError(name)

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = None if closure is None else closure()
        self._at_step()
        return loss


def _with_closure(args: Any, options: Any, keep_gradients: Callable[[], None]) -> Any:
    """Arguments of `Optimizer.step` whose closure, if there is one, keeps gradients.

    They are there after its first call; without a closure they are there already.
    """
    closure = args[1] if len(args) > 1 else options.get("closure")
    if closure is None:
        keep_gradients()
        return None
    calls = 0

    def keeping() -> Any:
        nonlocal calls
        loss = closure()
        calls += 1
        if calls == 1:
            keep_gradients()
        return loss

    return (args[0], keeping), {k: v for k, v in options.items() if k != "closure"}


def _whole(outputs: list[Any], rows: int) -> Any:
    """The last output of the model; all of them where each saw a part of the batch."""
    import torch

    last = outputs[-1]
    parts = len(outputs) > 1 and len(last) < rows
    if parts and sum(len(output) for output in outputs) == rows:
        return torch.cat(outputs)
    return last


def _of_peft(names: Iterable[str]) -> dict[str, LayoutEntry]:
    """Where a model of peft keeps what a workload with LoRA calls `q_proj.weight` and
    `q_proj_lora_A.weight`."""
    return {
        re.sub(r"\.(lora_[AB])\.default\.", r"_\1.", name)
        .removeprefix("base_model.model.")
        .replace(".base_layer.", "."): LayoutEntry(name)
        for name in names
        if name.startswith("base_model.model.")
    }


def _float64() -> AbstractContextManager[Any]:
    """A library's code may name float32 where it means no less than that."""
    from bakeoff_import.float64 import Float64

    mode: AbstractContextManager[Any] = Float64()
    return mode


def _widen(model: Any) -> None:
    forward = model.forward

    def wide(*args: Any, **kwargs: Any) -> Any:
        with _float64():
            return forward(*args, **kwargs)

    model.forward = wide


def _refuse_what_needs_a_gpu(options: Mapping[str, str]) -> None:
    needed = {
        'compile = "cuda_graphs"': options.get("compile") == "cuda_graphs",
        f'cuda_allocator = "{options.get("cuda_allocator")}"': options.get(
            "cuda_allocator", "default"
        )
        != "default",
    }
    for setting, stated in needed.items():
        if stated:
            raise AdapterError(f"{setting} needs a GPU, and torch sees none here")


def _eager() -> AbstractContextManager[Any]:
    """Passes over torch.compile and model.compile, where this torch can do so."""
    import torch

    set_stance = getattr(torch.compiler, "set_stance", None)
    return nullcontext() if set_stance is None else set_stance("force_eager")


def _float32_at_least(tensor: Any) -> Any:
    """numpy has no bfloat16."""
    import torch

    half = tensor.dtype in (torch.bfloat16, torch.float16)
    return tensor.float() if half else tensor


def _full(tensor: Any) -> Any:
    """Of a tensor that is split among devices all of it."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()


def _placed_as(tensor: Any, value: Any) -> Any:
    """`value`, which every device has, on the device of `tensor` and split as it is."""
    value = value.to(tensor.device)
    if not hasattr(tensor, "full_tensor"):
        return value
    from torch.distributed.tensor import distribute_tensor

    value = value.to(tensor.dtype)
    mesh, places = tensor.device_mesh, tensor.placements
    return distribute_tensor(value, mesh, places, src_data_rank=None)


def _constant_zero(tensor: Any) -> bool:
    """A parameter that is not trained and adds nothing."""
    import torch

    kept = isinstance(tensor, torch.nn.Parameter) and not tensor.requires_grad
    return kept and not bool(tensor.any())


def _to_host(tensor: Any) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array.copy()


def _copy(loss: Any) -> Any:
    """A loss that later steps cannot overwrite (CUDA graphs reuse their outputs)."""
    return loss.detach().clone() if hasattr(loss, "detach") else loss


def _detached(loss: Any) -> Any:
    return loss.detach() if hasattr(loss, "detach") else loss


def _floats(losses: list[Any]) -> list[float]:
    """Of one device in one copy."""
    import torch

    if all(isinstance(loss, torch.Tensor) for loss in losses):
        values: list[float] = torch.stack([x.reshape(()) for x in losses]).tolist()
        return values
    return [float(loss) for loss in losses]


def _sums(tensors: Iterable[Any]) -> list[float]:
    import torch

    sums = [_full(tensor.detach().sum()) for tensor in tensors]
    values: list[float] = torch.stack(sums).tolist() if sums else []
    return values


def _forget(optimizer: Any) -> bool:
    """Empties the state of an optimizer in place; False: another one is needed.

    Compiled steps and captured graphs hold on to its tensors. Of these classes all
    zeros is the state before the first step.
    """
    import torch

    known = (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.SGD)
    if type(optimizer) not in known:
        return False
    if any(group.get("dampening", 0) for group in optimizer.param_groups):
        return False
    with torch.no_grad():
        for state in optimizer.state.values():
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    value.zero_()
                elif isinstance(value, (int, float)):
                    state[key] = type(value)(0)
    return True


def _barrier() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _channels_last(model: torch.nn.Module) -> bool:
    import torch

    # Kernels of one pixel or one channel are contiguous in both formats.
    kernels = [p for p in model.parameters() if p.dim() == 4]
    telling = [p for p in kernels if p.shape[1] > 1 and p.shape[2:].numel() > 1]
    return bool(telling) and all(
        p.is_contiguous(memory_format=torch.channels_last) for p in telling
    )


def _tf32(torch_module: Any) -> dict[str, str]:
    """ "tf32" or "ieee" for each kind of kernel; "none" is torch's own default."""
    kinds = {
        "matmul": ("cuda", "matmul"),
        "conv": ("cudnn", "conv"),
        "rnn": ("cudnn", "rnn"),
        "mkldnn_matmul": ("mkldnn", "matmul"),
        "mkldnn_conv": ("mkldnn", "conv"),
    }
    flags = {}
    for kind, (library, part) in kinds.items():
        backend = getattr(torch_module.backends, library, None)
        value = getattr(getattr(backend, part, None), "fp32_precision", None)
        if value is not None:
            flags[kind] = str(value)
    return flags


def _describe_optimizer(optimizer: Any) -> dict[str, Any]:
    group = optimizer.param_groups[0]
    config = {key: value for key, value in group.items() if key != "params"}
    for key in ("decay",):
        if hasattr(optimizer, key):
            config[key] = getattr(optimizer, key)
    return {"class": type(optimizer).__name__, **config}


def _build_flags(config: str, parallel: str) -> dict[str, Any]:
    """The few lines of torch's build description that change how fast it is."""
    flags: dict[str, Any] = {}
    wanted = {
        "blas": r"BLAS_INFO=(\w+)",
        "lapack": r"LAPACK_INFO=(\w+)",
        "cpu_capability": r"CPU capability usage: (\S+)",
        "mkldnn": r"MKL-DNN v([\w.]+)",
        "mkl": r"Math Kernel Library Version (\S+)",
        "openmp": r"OpenMP (\S+)",
    }
    for key, pattern in wanted.items():
        found = re.search(pattern, config)
        if found:
            flags[key] = found.group(1)
    found = re.search(r"ATen parallel backend: (.+)", parallel)
    if found:
        flags["parallel_backend"] = found.group(1).strip()
    return flags


def probe(probe: Probe) -> None:
    """What the environment holds that is named after it (see probe.py)."""
    probe.load_framework("torch")
    import torch

    probe.say("threads", torch.get_num_threads())
    probe.say("devices", "cuda" if torch.cuda.is_available() else "cpu")
    config = torch.__config__.show()
    found = re.search(r"BLAS_INFO=(\w+)", config)
    onednn = "with oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"
    probe.say("BLAS", f"{found.group(1) if found else 'unknown'}, {onednn}")
    keep = ("CPU capability", "Intel(R)", "OpenMP", "CUDA Runtime", "CuDNN")
    lines = [line.strip(" -") for line in config.splitlines()]
    probe.say("build", "; ".join(line for line in lines if line.startswith(keep)))
    probe.say("tf32", torch.get_float32_matmul_precision())
    probe.load_if_there("keras", KERAS_BACKEND="torch")


def make() -> Adapter:
    return TorchAdapter()
