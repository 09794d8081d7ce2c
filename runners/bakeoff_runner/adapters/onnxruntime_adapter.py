"""ONNX Runtime, which does not train.

What a script has to offer, generated or edited by its user:

- ``load_data(path)``: numpy arrays, rows first, in the order of the graph's inputs;
- ``batches(arrays)``: an endless iterator of tuples for ``predict_step``, of
  ``BATCH_SIZE`` rows each;
- ``build_model(weights, real) -> onnx.ModelProto``, from a dict of arrays by canonical
  name; ``real`` is numpy's type of all floating-point numbers;
- ``make_session(model, threads) -> onnxruntime.InferenceSession``;
- ``predict_step(session, *batch) -> output``, an array or an OrtValue;
- of the scenario "generate", ``make_decoder(session)``: what ``predict_step`` and
  ``generate`` get in place of the session.

A session that does not run on the script's ``PROVIDER`` is a failure, and so is one
whose provider fails later: ONNX Runtime itself falls back to the CPU with a warning.

In double precision ONNX Runtime lacks kernels (convolutions, average pooling, LSTM,
erf and others). A graph that needs one is proven by the reference implementation that
comes with ONNX: the same graph, node by node. That ONNX Runtime computes it is then
shown by the proof in single precision.
"""

from __future__ import annotations

import functools
import math
import os
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Mapping, Optional

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    RunResult,
)
from bakeoff_runner.generation import (
    GENERATION_NAMES,
    prove_generation,
    word_request,
)
from bakeoff_runner.pipeline import endless
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

_SCRIPT_NAMES = {
    **PREDICTION_NAMES,
    "build_model": "build_model(weights, real)",
    "make_session": "make_session(model, threads)",
    "predict_step": "predict_step(session, *inputs)",
}
_GENERATE_NAMES = {**GENERATION_NAMES, "make_decoder": "make_decoder(session)"}
_OPTIONS = {"optimization", "io_binding", "provider", "cache"}
_ON_GPU = {"cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}


class OnnxRuntimeAdapter(ScriptAdapter):
    """One build at a time. A session keeps no state: there is nothing to restore."""

    def __init__(self) -> None:
        self._dtype = "float32"
        self._threads = 1
        self._model: Any = None
        self._session: Any = None  # None: in double precision, by the reference
        self._decoder: Any = None  # of the scenario "generate"
        self._data: tuple[Array, ...] = ()
        self._batches: Optional[Iterator[Any]] = None

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        check_options(options, _OPTIONS, "onnxruntime")
        import numpy
        import onnx
        import onnxruntime

        self._threads = threads
        available = onnxruntime.get_available_providers()
        versions = {
            "onnxruntime": onnxruntime.__version__,
            "onnx": onnx.__version__,
            "numpy": numpy.__version__,
        }
        effective = {
            "threads": threads,
            "available_providers": available,
        }
        on_gpu = _ON_GPU.get(options.get("provider", "cpu")) in available
        return ImportInfo(versions, "cuda:0" if on_gpu else "cpu", effective)

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import numpy as np

        self._drop()
        if not request.predict:
            raise AdapterError("ONNX Runtime does not train")
        self._dtype = request.dtype
        script = self._load_script(request)
        self._require(_SCRIPT_NAMES)
        if request.generate:
            self._require(_GENERATE_NAMES)
        if request.weights is None:
            raise AdapterError("onnxruntime needs a weights file")
        weights = read_safetensors(request.weights)
        self._model = script.build_model(weights, np.dtype(self._dtype))
        self._data = self._arrays(request, "onnxruntime", self._dtype)
        self._make_session()
        if request.generate:
            session = self._session or _ReferenceSession(self._model)
            self._decoder = script.make_decoder(session)
        return self._effective(weights)

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        import numpy as np

        batch = self._rows(request.first, request.count)
        if self._decoder is not None:
            script = self._the_script()
            return prove_generation(script, self._decoder, batch[0], np.array)
        if self._session is None:
            return {"output": self._by_reference(batch)}
        first = next(iter(self._the_script().batches(batch)))
        try:
            output = self._the_script().predict_step(self._session, *first)
        except Exception as error:
            if self._dtype == "float32" or not _lacks_double(error):
                raise
            return {"output": self._by_reference(batch)}
        return {"output": joined(output, _to_numpy).copy()}

    def losses(self, steps: int) -> LossesResult:
        raise AdapterError("ONNX Runtime does not train")

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        # A run returns when its output is complete.
        import onnxruntime

        return predict_burst(
            self._predict_step(),
            self._stream(),
            steps,
            mark,
            lambda output: None,
            {onnxruntime.OrtValue: lambda value: value.numpy()},
        )

    def restore(self) -> None:
        """The session's weights never change."""

    def request(self) -> Callable[[], None]:
        if self._decoder is not None:
            script, stream = self._the_script(), self._stream()
            return word_request(script, self._decoder, stream, lambda word: None)
        return predict_request(
            self._predict_step(), self._stream(), lambda output: None
        )

    def _predict_step(self) -> Callable[..., Any]:
        model = self._session if self._decoder is None else self._decoder
        return functools.partial(self._the_script().predict_step, model)

    def _drop(self) -> None:
        self._drop_script()
        self._model = self._session = self._decoder = self._batches = None
        self._data = ()

    def _stream(self) -> Iterator[Any]:
        script = self._the_script()
        if self._session is None:
            raise AdapterError("ONNX Runtime has no kernels for this graph in float64")
        if self._batches is None:
            self._batches = endless(script.batches(self._data), script, self._data)
        return self._batches

    def _make_session(self) -> None:
        script = self._the_script()
        wanted = getattr(script, "PROVIDER", "CPUExecutionProvider")
        if self._dtype == "float32":
            self._session = script.make_session(self._model, self._threads)
        else:
            self._session = self._double_session(wanted)
            if self._session is None:
                return
        got = self._session.get_providers()
        if got[0] != wanted:
            raise AdapterError(f"asked for {wanted}, the session runs on {got[0]}")
        self._session.disable_fallback()

    def _double_session(self, provider: str) -> Any:
        """Node by node; None where that is not in double precision throughout.

        Attributes are float32: not those that the graph was written with (an epsilon of
        0.001), nor those that optimisations fold constants into; GELU is made of
        constants that are.
        """
        import onnxruntime as ort

        for node in self._model.graph.node:
            rounded = any(exact != value for _, value, exact in _reals(node))
            if node.op_type == "Gelu" or rounded:
                return None
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = self._threads
        model = self._model.SerializeToString()
        try:
            return ort.InferenceSession(model, options, [provider])
        except Exception as error:
            if not _lacks_double(error):
                raise
            return None

    def _effective(self, weights: Mapping[str, Array]) -> dict[str, Any]:
        read = {tensor.name for tensor in self._model.graph.initializer}
        effective: dict[str, Any] = {
            "batch": getattr(self._the_script(), "BATCH_SIZE", None),
            "tensors": len(read),
            "parameters": sum(array.size for array in weights.values()),
            "opset": self._model.opset_import[0].version,
            "computed_by": "onnxruntime" if self._session else "onnx.reference",
        }
        if self._session is not None:
            options = self._session.get_session_options()
            effective["provider"] = self._session.get_providers()[0]
            effective["providers"] = self._session.get_providers()
            effective["threads"] = options.intra_op_num_threads
            effective["optimization"] = options.graph_optimization_level.name
        return effective

    def _rows(self, first: int, count: int) -> tuple[Array, ...]:
        rows = min((len(array) for array in self._data), default=0)
        check_rows(first, count, rows)
        return tuple(array[first : first + count] for array in self._data)

    def _by_reference(self, batch: tuple[Array, ...]) -> Array:
        import numpy as np

        names = [value.name for value in self._model.graph.input]
        outputs = _reference(self._model).run(None, dict(zip(names, batch)))
        return joined(outputs if len(outputs) > 1 else outputs[0], np.asarray)


def _lacks_double(error: Exception) -> bool:
    """Whether ONNX Runtime has no kernel in double precision.

    Most are missing when the session is made; LSTM and GRU say so only when they run.
    """
    text = str(error)
    return "[ONNXRuntimeError]" in text and (
        "NOT_IMPLEMENTED" in text or "does not support double" in text
    )


def _reference(model: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(
        model,
        new_ops=[
            _correct_lrn(),
            _correct_gelu(),
            *_correct_pools(),
            _correct_conv_transpose(),
            _correct_resize(),
        ],
    )
    for op in evaluator.rt_nodes_:
        for name, _, exact in _reals(op.onnx_node):
            setattr(op, name, exact)
    return evaluator


class _ReferenceSession:
    """What a decoder asks of a session, by the reference implementation."""

    def __init__(self, model: Any) -> None:
        self._graph, self._evaluator = model.graph, _reference(model)

    def get_inputs(self) -> list[Any]:
        return [_described(value) for value in self._graph.input]

    def get_outputs(self) -> list[Any]:
        return [_described(value) for value in self._graph.output]

    def run(self, names: Optional[list[str]], feed: dict[str, Any]) -> list[Array]:
        results: list[Array] = self._evaluator.run(names, feed)
        return results

    def io_binding(self) -> _ReferenceBinding:
        return _ReferenceBinding()

    def run_with_iobinding(self, binding: _ReferenceBinding) -> None:
        feed = {name: _to_numpy(value) for name, value in binding.inputs.items()}
        binding.take(self.run(list(binding.outputs), feed))


class _ReferenceBinding:
    """Arrays and OrtValues by name; what it gives has the method numpy() alone."""

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}  # None: a new value
        self._taken: list[Any] = []

    def bind_cpu_input(self, name: str, value: Any) -> None:
        self.inputs[name] = value

    def bind_ortvalue_output(self, name: str, value: Any) -> None:
        self.outputs[name] = value

    def bind_output(self, name: str, device: str = "cpu") -> None:
        self.outputs[name] = None

    bind_ortvalue_input = bind_cpu_input

    def take(self, results: list[Array]) -> None:
        self._taken = [SimpleNamespace(numpy=lambda r=r: r) for r in results]
        for bound, result in zip(self.outputs.values(), results):
            if bound is not None:
                bound.update_inplace(result)

    def get_outputs(self) -> list[Any]:
        return self._taken


def _described(value: Any) -> Any:
    """Name, type and sizes as a session tells them."""
    kind = value.type.tensor_type
    sizes = [size.dim_param or size.dim_value for size in kind.shape.dim]
    real = {1: "tensor(float)", 11: "tensor(double)"}.get(kind.elem_type, "tensor")
    return SimpleNamespace(name=value.name, shape=sizes, type=real)


def _reals(node: Any) -> list[tuple[str, float, float]]:
    """The node's real attributes: name, as kept in float32, as they were written.

    0.001 is kept as 0.0010000000474974513; the shortest decimal kept so is 0.001.
    """
    import numpy as np
    from onnx import AttributeProto

    return [
        (attribute.name, attribute.f, float(str(np.float32(attribute.f))))
        for attribute in node.attribute
        if attribute.type == AttributeProto.FLOAT
    ]


def _correct_lrn() -> Any:
    """LRN as ONNX specifies it.

    The reference implementation of onnx 1.23 leaves channels out: it counts them by
    the size of the batch.
    """
    import numpy as np
    from onnx.reference.op_run import OpRun

    class LRN(OpRun):  # type: ignore[misc]
        def _run(
            self, x: Any, alpha: Any = None, beta: Any = None, bias: Any = None,
            size: Any = None,
        ) -> tuple[Any]:  # fmt: skip
            before, after = (size - 1) // 2, size // 2
            padded = np.pad(x**2, ((0, 0), (before, after), (0, 0), (0, 0)))
            channels = x.shape[1]
            squares = sum(padded[:, i : i + channels] for i in range(size))
            return ((x / (bias + alpha / size * squares) ** beta).astype(x.dtype),)

    return LRN


def _correct_gelu() -> Any:
    """GELU without the float32 constants, and the float32 erf, of onnx 1.23."""
    import numpy as np
    from onnx.reference.op_run import OpRun

    class Gelu(OpRun):  # type: ignore[misc]
        def _run(self, x: Any, approximate: Any = None) -> tuple[Any]:
            if approximate == "tanh":
                inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
                return (0.5 * x * (1 + np.tanh(inner)),)
            erf = np.vectorize(math.erf, otypes=[x.dtype])
            return (0.5 * x * (1 + erf(x / math.sqrt(2))),)

    return Gelu


def _correct_pools() -> list[Any]:
    """MaxPool and AveragePool as ONNX specifies them.

    The reference implementation of onnx 1.23 takes the pads before the first two axes
    for those around the first one, and knows pads of two axes only.
    """
    import numpy as np
    from onnx.reference.op_run import OpRun

    def windows(x: Any, kernel: Any, strides: Any, pads: Any, filler: float) -> Any:
        axes = len(kernel)
        pads = pads or [0] * (2 * axes)
        around = [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:])]
        padded = np.pad(x, around, constant_values=filler)
        window = np.lib.stride_tricks.sliding_window_view
        view = window(padded, kernel, tuple(range(2, axes + 2)))
        steps = [slice(None, None, step) for step in strides or [1] * axes]
        places = (slice(None), slice(None), *steps)
        return view[places]

    class MaxPool(OpRun):  # type: ignore[misc]
        def _run(
            self, x: Any, auto_pad: Any = None, ceil_mode: Any = None,
            dilations: Any = None, kernel_shape: Any = None, pads: Any = None,
            storage_order: Any = None, strides: Any = None,
        ) -> tuple[Any]:  # fmt: skip
            seen = windows(x, kernel_shape, strides, pads, -np.inf)
            return (seen.max(axis=tuple(range(x.ndim, seen.ndim))),)

    class AveragePool(OpRun):  # type: ignore[misc]
        def _run(
            self, x: Any, auto_pad: Any = None, ceil_mode: Any = None,
            count_include_pad: Any = None, dilations: Any = None,
            kernel_shape: Any = None, pads: Any = None, strides: Any = None,
        ) -> tuple[Any]:  # fmt: skip
            seen = windows(x, kernel_shape, strides, pads, 0)
            axes = tuple(range(x.ndim, seen.ndim))
            if count_include_pad:
                return (seen.mean(axis=axes),)
            inside = windows(np.ones_like(x), kernel_shape, strides, pads, 0)
            return (seen.sum(axis=axes) / inside.sum(axis=axes),)

    return [MaxPool, AveragePool]


def _correct_conv_transpose() -> Any:
    """ConvTranspose as ONNX specifies it.

    The reference implementation of onnx 1.23 takes one row where there are groups.
    """
    import numpy as np
    from onnx.reference.op_run import OpRun

    class ConvTranspose(OpRun):  # type: ignore[misc]
        def _run(
            self, x: Any, w: Any, b: Any = None, auto_pad: Any = None,
            dilations: Any = None, group: Any = None, kernel_shape: Any = None,
            output_padding: Any = None, output_shape: Any = None, pads: Any = None,
            strides: Any = None,
        ) -> tuple[Any]:  # fmt: skip
            kernel, rows, groups = w.shape[2:], len(x), group or 1
            axes = len(kernel)
            strides, dilations = strides or [1] * axes, dilations or [1] * axes
            pads, extra = pads or [0] * (2 * axes), output_padding or [0] * axes
            steps = list(zip(x.shape[2:], strides, kernel, dilations, extra))
            sizes = [(n - 1) * s + d * (k - 1) + 1 + e for n, s, k, d, e in steps]
            y = np.zeros((rows, groups * w.shape[1], *sizes), x.dtype)
            for place in np.ndindex(*kernel):
                reached = [
                    slice(k * d, k * d + (n - 1) * s + 1, s)
                    for k, (n, s, _, d, _) in zip(place, steps)
                ]
                at = (slice(None), slice(None), *place)
                taps = w[at]  # I, O / groups
                parts = zip(np.split(x, groups, 1), np.split(taps, groups, 0))
                sums = [np.einsum("ni...,io->no...", a, k) for a, k in parts]
                at = (slice(None), slice(None), *reached)
                y[at] += np.concatenate(sums, 1)
            inside = [
                slice(pads[i], size - pads[axes + i]) for i, size in enumerate(sizes)
            ]
            at = (slice(None), slice(None), *inside)
            y = y[at]
            return (y if b is None else y + b.reshape(-1, *[1] * axes),)

    return ConvTranspose


def _correct_resize() -> Any:
    """Resize to sizes of the last axes, whose places are whole numbers before they are
    divided.

    The reference implementation of onnx 1.23 goes element by element, and divides by a
    rounded scale.
    """
    import numpy as np
    from onnx.reference.op_run import OpRun

    def taps(old: int, new: int, mode: str, coordinates: str) -> Any:
        i = np.arange(new)
        below = {"half_pixel": 2 * new, "asymmetric": new}.get(
            coordinates, max(new - 1, 1)
        )
        above = i * (old - 1 if coordinates == "align_corners" else old)
        if coordinates == "half_pixel":
            above = (2 * i + 1) * old - (0 if mode == "nearest" else new)
        above = np.maximum(above, 0)
        low, rest = above // below, above % below
        share = rest / below if mode == "linear" else 0 * low
        return low, np.minimum(low + 1, old - 1), share

    class Resize(OpRun):  # type: ignore[misc]
        def _run(
            self, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None,
            antialias: Any = None, axes: Any = None,
            coordinate_transformation_mode: Any = None, cubic_coeff_a: Any = None,
            exclude_outside: Any = None, extrapolation_value: Any = None,
            keep_aspect_ratio_policy: Any = None, mode: Any = None,
            nearest_mode: Any = None,
        ) -> tuple[Any]:  # fmt: skip
            for axis, new in zip(axes, sizes):
                old = x.shape[axis]
                low, high, share = taps(
                    old, int(new), mode, coordinate_transformation_mode
                )
                share = share.reshape(-1, *[1] * (x.ndim - axis - 1))
                x = np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share
            return (x,)

    return Resize


def _to_numpy(output: Any) -> Array:
    array: Array = output.numpy() if hasattr(output, "numpy") else output
    return array


def probe(probe: Probe) -> None:
    """What the environment holds that is named after it (see probe.py)."""
    probe.load_framework("onnxruntime")
    import onnxruntime

    probe.say("threads", len(os.sched_getaffinity(0)))
    probe.say("devices", " ".join(onnxruntime.get_available_providers()))
    probe.say("build", onnxruntime.get_build_info())
    probe.load("onnx")


def make() -> Adapter:
    return OnnxRuntimeAdapter()
