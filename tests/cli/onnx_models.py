"""Writes the ONNX files of the import's tests into a folder. Runs in the environment onnxruntime."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

RNG = np.random.default_rng(3)
F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741


def weight(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(
        RNG.normal(size=shape).astype(np.float32) * 0.3, name
    )


def ints(name: str, *numbers: int) -> Any:
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def model(
    nodes: Sequence[Any],
    initialisers: Sequence[Any],
    x: Sequence[Any],
    opset: int = 17,
    kind: int = F,
    outputs: Sequence[str] = ("out",),
) -> Any:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", kind, list(x))],
        [helper.make_tensor_value_info(name, F, None) for name in outputs],
        list(initialisers),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), [output], name=output, **attributes)


def good() -> dict[str, Any]:
    return {
        "cnn": model(
            [
                node(
                    "Conv",
                    ["x", "c.weight", "c.bias"],
                    'a "quoted"\nname',
                    pads=[1] * 4,
                ),
                node(
                    "BatchNormalization",
                    ['a "quoted"\nname', "b.weight", "b.bias", "b.mean", "b.var"],
                    "h",
                ),
                node("LeakyRelu", ["h"], "r", alpha=0.2),
                node(
                    "MaxPool",
                    ["r"],
                    "p",
                    kernel_shape=[3, 3],
                    strides=[2, 2],
                    ceil_mode=1,
                ),
                node("Shape", ["p"], "s"),
                node("Gather", ["s", "zero"], "n", axis=0),
                node("Concat", ["n", "rest"], "shape", axis=0),
                node("Reshape", ["p", "shape"], "f"),
                node("Gemm", ["f", "fc.weight", "fc.bias"], "out", transB=1),
            ],
            [
                weight("c.weight", 4, 3, 3, 3),
                weight("c.bias", 4),
                weight("b.weight", 4),
                weight("b.bias", 4),
                weight("b.mean", 4),
                numpy_helper.from_array(np.full(4, 1.5, np.float32), "b.var"),
                ints("zero", 0),
                ints("rest", -1),
                weight("fc.weight", 5, 64),
                weight("fc.bias", 5),
            ],
            ["batch", 3, 8, 8],
        ),
        "row": model(  # one axis of pixels
            [
                node("Conv", ["x", "w"], "c", strides=[2], pads=[1, 0]),
                node("Tanh", ["c"], "t"),
                node("AveragePool", ["t"], "p", kernel_shape=[2], strides=[2]),
                node("Flatten", ["p"], "out"),
            ],
            [weight("w", 6, 2, 3)],
            ["batch", 2, 17],
        ),
        "old_softmax": model(  # the axes after 1 are one
            [node("Softmax", ["x"], "s", axis=1), node("Mul", ["s", "scale"], "out")],
            [weight("scale", 3, 4)],
            ["batch", 3, 4],
            opset=11,
        ),
        "new_softmax": model(
            [node("Softmax", ["x"], "s", axis=1), node("Mul", ["s", "scale"], "out")],
            [weight("scale", 3, 4)],
            ["batch", 3, 4],
            opset=13,
        ),
        "tied": model(
            [
                node("Gather", ["table", "x"], "e"),
                node("Transpose", ["table"], "t", perm=[1, 0]),
                node("MatMul", ["e", "t"], "out"),
            ],
            [weight("table", 9, 6)],
            ["batch", 5],
            kind=I,
        ),
        "heads": model(  # the batch written as a number, merged with heads
            [
                node("Transpose", ["x"], "first", perm=[1, 0, 2]),
                node("MatMul", ["first", "w"], "q"),
                node("Reshape", ["q", "cut"], "c"),
                node("Transpose", ["c"], "h", perm=[1, 0, 2]),
                node("Transpose", ["h"], "k", perm=[0, 2, 1]),
                node("MatMul", ["h", "k"], "s"),
                node("Softmax", ["s"], "p"),
                node("MatMul", ["p", "h"], "v"),
                node("Transpose", ["v"], "b", perm=[1, 0, 2]),
                node("Reshape", ["b", "back"], "last"),
                node("Transpose", ["last"], "out", perm=[1, 0, 2]),
            ],
            [weight("w", 8, 8), ints("cut", 3, 20, 2), ints("back", 3, 5, 8)],
            [5, 3, 8],
        ),
    }


def bad() -> dict[str, Any]:
    identity = node("Identity", ["x"], "out")
    loop = helper.make_graph([], "body", [], [])
    huge = TensorProto(name="w", data_type=F, dims=[1 << 40, 1 << 40], raw_data=b"1234")
    short = TensorProto(name="w", data_type=F, dims=[1000000], raw_data=b"1234")
    return {
        "circle": model(
            [
                node("Add", ["x", "b"], "a"),
                node("Relu", ["a"], "b"),
                node("Relu", ["b"], "out"),
            ],
            [],
            ["n", 3],
        ),
        "twice": model(
            [
                node("Relu", ["x"], "a"),
                node("Tanh", ["x"], "a"),
                node("Relu", ["a"], "out"),
            ],
            [],
            ["n", 3],
        ),
        "huge": model([node("Add", ["x", "w"], "out")], [huge], ["n", 3]),
        "short": model([node("Add", ["x", "w"], "out")], [short], ["n", 3]),
        "loop": model(
            [helper.make_node("Loop", ["", "", "x"], ["out"], body=loop)], [], ["n", 3]
        ),
        "quantised": model(
            [
                helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
                node("DequantizeLinear", ["q", "s", "z"], "out"),
            ],
            [],
            ["n", 3],
        ),
        "foreign": model(
            [helper.make_node("Magic", ["x"], ["out"], domain="com.example")],
            [],
            ["n", 3],
        ),
        "two_outputs": model(
            [identity, node("Relu", ["x"], "other")],
            [],
            ["n", 3],
            outputs=["out", "other"],
        ),
        "over_the_batch": model([node("Softmax", ["x"], "out", axis=0)], [], ["n", 3]),
        "old": model([identity], [], ["n", 3], opset=5),
        "open": model([identity], [], ["n", "length"]),
        "unsupported": model(
            [
                node("Det", ["x"], "a"),
                node("TopK", ["x", "k"], "b"),
                node("Add", ["a", "b"], "out"),
            ],
            [ints("k", 1)],
            ["n", 3, 3],
        ),
    }


def external(folder: Path, name: str, location: str) -> None:
    tensor = TensorProto(name="w", data_type=F, dims=[3, 3], data_location=1)
    for key, value in {"location": location, "offset": "0", "length": "36"}.items():
        tensor.external_data.add(key=key, value=value)
    made = model([node("MatMul", ["x", "w"], "out")], [tensor], ["n", 3])
    (folder / f"{name}.onnx").write_bytes(made.SerializeToString())


def chain(count: int) -> Any:
    nodes = [node("Relu", ["x"], "v0")]
    nodes += [node("Neg", [f"v{i}"], f"v{i + 1}") for i in range(count)]
    nodes += [node("MatMul", [f"v{count}", "w"], "out")]
    return model(nodes, [weight("w", 3, 3)], ["n", 3])


def write(folder: Path) -> None:
    for name, made in [*good().items(), *bad().items(), ("chain", chain(10000))]:
        save(made, str(folder / f"{name}.onnx"))
    numbers = RNG.normal(size=(3, 3)).astype(np.float32).tobytes()
    (folder / "inside.bin").write_bytes(numbers)
    (folder.parent / "outside.bin").write_bytes(numbers)
    os.symlink(folder.parent / "outside.bin", folder / "link.bin")
    external(folder, "external", "inside.bin")
    external(folder, "above", "../outside.bin")
    external(folder, "absolute", str(folder / "inside.bin"))
    external(folder, "linked", "link.bin")
    external(folder, "gone", "gone.bin")
    whole = (folder / "cnn.onnx").read_bytes()
    (folder / "truncated.onnx").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "noise.onnx").write_bytes(
        RNG.integers(0, 256, 5000).astype(np.uint8).tobytes()
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
