"""Computes with an ONNX file, for the program to compare its import with: in float64 by
the reference implementation that comes with ONNX, in float32 by ONNX Runtime.

Requests of ``python -m bakeoff_import --onnx`` (see ``__main__``):

    {"op": "open", "file": ..., "outputs": names, one a line}
    {"op": "compute", "weights": FILE, "inputs": FILE, "precision": "float64",
     "out": FILE}

Weights replace the file's initialisers of the same names; the answer's file holds
"output0" and so on. Names of inputs and weights are those of the file.
"""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file, save_file

from bakeoff_import.problems import ImportProblem

_FLOATS = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
}
_DOUBLE = onnx.TensorProto.DOUBLE
_SELU = 1.6732632423543772, 1.0507009873554805


def _shortest(number: float) -> float:
    """1e-5 where a float32 is the nearest one to 1e-5; 1/6 has no short form."""
    single = np.float32(number)
    return 1 / 6 if single == np.float32(1 / 6) else float(str(single))


def _wide_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in _FLOATS:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _wide_node(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _wide_tensor(attribute.t)
        if attribute.HasField("g"):
            _wide_graph(attribute.g)
        if node.op_type == "Cast" and attribute.name == "to":
            attribute.i = _DOUBLE if attribute.i in _FLOATS else attribute.i
        if node.op_type == "Constant" and attribute.name.startswith("value_float"):
            numbers: Any = (
                _shortest(attribute.f)
                if attribute.name == "value_float"
                else [_shortest(f) for f in attribute.floats]
            )
            wide = numpy_helper.from_array(np.array(numbers, dtype=np.float64))
            attribute.Clear()
            attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
            attribute.t.CopyFrom(wide)
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = numpy_helper.from_array(np.zeros(1))
        node.attribute.append(onnx.helper.make_attribute("value", zero))


def _wide_graph(graph: onnx.GraphProto) -> None:
    for tensor in graph.initializer:
        _wide_tensor(tensor)
    for node in graph.node:
        _wide_node(node)
    for info in [*graph.input, *graph.output, *graph.value_info]:
        kind = info.type.tensor_type
        if kind.elem_type in _FLOATS:
            kind.elem_type = _DOUBLE


def _rows_later(graph: onnx.GraphProto) -> bool:
    """Recurrent layers with the batch in front (layout=1), which ONNX Runtime
    lacks, with the steps in front, between transpositions. Whether there were any."""
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if any(a.name == "layout" and a.i for a in node.attribute):
            kept = [a for a in node.attribute if a.name != "layout"]
            del node.attribute[:]
            node.attribute.extend(kept)
            behind: list[onnx.NodeProto] = []
            for names, places, perms in (
                (node.input, (0, 5, 6), ([1, 0, 2],) * 3),
                (node.output, (0, 1, 2), ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])),
            ):
                for place, perm in zip(places, perms):
                    if place >= len(names) or not names[place]:
                        continue
                    inner = f"{node.output[0] or node.output[1]}/steps/{names[place]}"
                    ends = [names[place], inner]
                    if names is node.output:
                        ends.reverse()
                    turned = onnx.helper.make_node(
                        "Transpose", ends[:1], ends[1:], perm=perm
                    )
                    (nodes if names is node.input else behind).append(turned)
                    names[place] = inner
            nodes += [node, *behind]
        else:
            nodes.append(node)
    changed = len(nodes) > len(graph.node)
    copies = [onnx.NodeProto.FromString(one.SerializeToString()) for one in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return changed


def _inference(graph: onnx.GraphProto) -> bool:
    """Dropout and batch norm as in inference. Whether the file had them in training."""
    changed = False
    for node in graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2:
            node.input[2] = ""
            changed = True
        if node.op_type == "BatchNormalization":
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
            changed = changed or len(node.output) > 1
            del node.output[1:]
    return changed


class OnnxService:
    def __init__(self) -> None:
        self.file = ""
        self.model: Any = None
        self.outputs: list[str] = []
        self.changed = False
        self.sessions: dict[str, Any] = {}

    def answer(self, op: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return getattr(self, f"_{op}")(fields)  # type: ignore[no-any-return]
        except ImportProblem as problem:
            return {
                "problem": str(problem),
                "remedy": problem.remedy,
                "where": problem.where,
            }

    def _open(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.file, self.outputs = fields["file"], fields["outputs"].split("\n")
        try:
            self.model = onnx.load(self.file)
        except Exception as error:
            raise ImportProblem(
                f"onnx cannot read the file: {str(error)[:300]}"
            ) from error
        changed = [_inference(self.model.graph), _rows_later(self.model.graph)]
        self.changed = any(changed)
        return {}

    def _compute(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        inputs = load_file(fields["inputs"])
        weights = load_file(fields["weights"])
        wide = fields["precision"] == "float64"
        run = self._wide if wide else self._single
        made = {
            f"output{i}": np.array(one, dtype=np.float64, order="C")
            for i, one in enumerate(run(inputs, weights))
        }
        save_file(made, fields["out"])
        return {}

    def _replaced(self, graph: Any, weights: Mapping[str, Any]) -> None:
        for tensor in graph.initializer:
            if tensor.name in weights:
                array = numpy_helper.from_array(weights[tensor.name], tensor.name)
                tensor.CopyFrom(array)
        for node in graph.node:
            if node.op_type == "Constant" and node.output[0] in weights:
                node.attribute[0].t.CopyFrom(
                    numpy_helper.from_array(weights[node.output[0]])
                )
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._replaced(attribute.g, weights)

    def _wide(self, inputs: Mapping[str, Any], weights: Mapping[str, Any]) -> Any:
        from onnx.reference import ReferenceEvaluator

        if "wide" not in self.sessions:
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
            _wide_graph(model.graph)
            for function in model.functions:
                for node in function.node:
                    _wide_node(node)
            self.sessions["wide"] = model
        model = self.sessions["wide"]
        self._replaced(model.graph, weights)
        try:
            evaluator = ReferenceEvaluator(model, new_ops=_own_ops(_opset(model)))
            _exact_attributes(evaluator)
            feeds = self._feeds(inputs, np.float64)
            found = evaluator.run(self.outputs, feeds)
        except Exception as error:
            raise ImportProblem(
                "ONNX's reference implementation cannot compute the file: "
                + str(error)[:300]
            ) from error
        return found

    def _single(self, inputs: Mapping[str, Any], weights: Mapping[str, Any]) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        try:
            whole = self.model.SerializeToString() if self.changed else self.file
            session = onnxruntime.InferenceSession(
                whole, options, providers=["CPUExecutionProvider"]
            )
            kinds = {one.name: one.type for one in session.get_inputs()}
            real = np.float16 if "tensor(float16)" in kinds.values() else np.float32
            if "tensor(double)" in kinds.values():
                real = np.float64
            feeds = self._feeds(inputs, real)
            feeds = {
                name: array.astype(np.int32) if "int32" in kinds[name] else array
                for name, array in feeds.items()
            }
            found = session.run(self.outputs, feeds)
        except Exception as error:
            raise ImportProblem(
                f"ONNX Runtime cannot compute the file: {str(error)[:300]}"
            ) from error
        return found

    def _feeds(self, inputs: Mapping[str, Any], real: Any) -> dict[str, Any]:
        kinds = {one.name: one.type.tensor_type for one in self.model.graph.input}
        truths = {
            name
            for name, one in kinds.items()
            if one.elem_type == onnx.TensorProto.BOOL
        }
        whole = {name: bool if name in truths else np.int64 for name in inputs}
        return {
            name: array.astype(real if array.dtype.kind == "f" else whole[name])
            for name, array in inputs.items()
        }


def _opset(model: Any) -> int:
    return max(
        (one.version for one in model.opset_import if one.domain in ("", "ai.onnx")),
        default=0,
    )


def _own_ops(opset: int) -> list[Any]:
    """Batch norm, which the reference computes as in training before opset 14;
    dropout, which it applies before opset 12; softmax, which it takes along one axis
    before opset 13 too; erf, the 1/6 of hard swish and the numbers of selu, which it
    rounds to float32; transposed convolutions, whose groups it mixes up."""
    import math

    from onnx.reference.op_run import OpRun
    from onnx.reference.ops.op_conv_transpose import ConvTranspose as OneGroup

    class BatchNormalization(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(
            self, x: Any, s: Any, b: Any, mean: Any, var: Any, **named: Any
        ) -> Any:
            epsilon = getattr(self, "epsilon", 1e-5)
            shape = (1, -1) + (1,) * (x.ndim - 2)
            mean, var = mean.reshape(shape), var.reshape(shape)
            normal = (x - mean) / np.sqrt(var + epsilon)
            return (normal * s.reshape(shape) + b.reshape(shape),)

    class Dropout(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, *others: Any, **named: Any) -> Any:
            return (x, np.ones(x.shape, dtype=bool))[: len(self.onnx_node.output)]

    erf = np.vectorize(math.erf, otypes=[np.float64])

    class Erf(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, **named: Any) -> Any:
            return (erf(x).astype(x.dtype),)

    class Gelu(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, **named: Any) -> Any:
            if getattr(self, "approximate", "none") == "tanh":
                inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
                return (0.5 * x * (1 + np.tanh(inner)),)
            return (0.5 * x * (1 + erf(x / np.sqrt(2.0))),)

    class HardSwish(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, **named: Any) -> Any:
            return (x * np.clip(x / 6 + 0.5, 0, 1),)

    class Selu(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, **named: Any) -> Any:
            numbers = []
            for name, exact in zip(("alpha", "gamma"), _SELU):
                number = getattr(self, name, None) or exact
                numbers.append(exact if abs(number - exact) < 1e-6 else number)
            alpha, gamma = numbers
            return (gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),)

    class ConvTranspose(OneGroup):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, w: Any, b: Any = None, **named: Any) -> Any:
            count = int(named.pop("group", None) or getattr(self, "group", None) or 1)
            parts = [np.split(a, count, axis) for a, axis in ((x, 1), (w, 0))]
            parts.append([None] * count if b is None else np.split(b, count))
            made = [super(ConvTranspose, self)._run(*part, **named, group=1)[0]
                    for part in zip(*parts)]  # fmt: skip
            return (np.concatenate(made, axis=1),)

    def log_softmax(x: Any, axis: int) -> Any:
        flat = x.reshape(*x.shape[:axis], -1)  # the axes from this one on are one
        top = flat - flat.max(axis=-1, keepdims=True)
        return (top - np.log(np.exp(top).sum(axis=-1, keepdims=True))).reshape(x.shape)

    class Softmax(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, **named: Any) -> Any:
            return (np.exp(log_softmax(x, _axis(self.onnx_node, x.ndim))),)

    class LogSoftmax(OpRun):  # type: ignore[misc]
        op_domain = ""

        def _run(self, x: Any, **named: Any) -> Any:
            return (log_softmax(x, _axis(self.onnx_node, x.ndim)),)

    old = [Softmax, LogSoftmax] if opset < 13 else []
    return [
        BatchNormalization,
        Dropout,
        Erf,
        Gelu,
        HardSwish,
        Selu,
        ConvTranspose,
        *old,
    ]


def _axis(node: Any, rank: int) -> int:
    """Of the softmax before opset 13."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    return int(axis % rank)


def _exact_attributes(evaluator: Any) -> None:
    for node in getattr(evaluator, "rt_nodes_", []):
        inner = getattr(node, "impl_", None)
        if inner is not None:
            _exact_attributes(inner)
        for attribute in node.onnx_node.attribute:
            if attribute.type == onnx.AttributeProto.FLOAT:
                setattr(node, attribute.name, _shortest(attribute.f))
