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
    more: Sequence[tuple[str, int, Sequence[Any]]] = (),
) -> Any:
    inputs = [("x", kind, x), *more]
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, of, list(d)) for name, of, d in inputs],
        [helper.make_tensor_value_info(name, F, None) for name in outputs],
        list(initialisers),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def nodes_of(text: str) -> list[Any]:
    """A line for each: "a b = Op x, y key=value"; an input may be empty."""
    made = []
    for line in text.strip().splitlines():
        outputs, call = line.split(" = ")
        op, *rest = call.split()
        names = "".join(word for word in rest if "=" not in word)
        given = dict(word.split("=") for word in rest if "=" in word)
        attributes = {
            key: [int(one) for one in value.split(",") if one]
            if "," in value
            else int(value)
            if value.lstrip("-").isdigit()
            else value
            for key, value in given.items()
        }
        made.append(
            helper.make_node(
                op,
                names.split(","),
                outputs.split(),
                name=outputs.split()[0],
                **attributes,
            )
        )
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


def table(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def sequences() -> dict[str, Any]:
    """T,N,F with the batch on axis 1; variants that the IR spells step by step."""
    gru = [weight("gw", 1, 12, 3), weight("gr", 1, 12, 4), weight("gb", 1, 24)]
    rnn = [weight("rw", 2, 5, 4), weight("rr", 2, 5, 5)]
    gates = [weight("lw", 1, 16, 3), weight("lr", 1, 16, 4), weight("lb", 1, 32)]
    first = [weight(name, 1, 1, 4) for name in ("h0", "c0")]
    spread = [ints("one", 1), ints("four", 4)]

    return {
        "gru": model(
            [
                helper.make_node(
                    "GRU", ["x", "gw", "gr", "gb"], ["g"], hidden_size=4, name="g"
                ),
                node("Squeeze", ["g", "one"], "s"),
                helper.make_node(
                    "RNN",
                    ["s", "rw", "rr"],
                    ["r", "h"],
                    hidden_size=5,
                    direction="bidirectional",
                    name="r",
                ),
                node("Transpose", ["h"], "t", perm=[1, 0, 2]),
                node("Flatten", ["t"], "out"),
            ],
            [*gru, *rnn, ints("one", 1)],
            [4, "batch", 3],
        ),
        "peepholes": model(
            [
                node("Shape", ["x"], "s"),
                node("Gather", ["s", "one"], "n"),
                node("Concat", ["one", "n", "four"], "rows", axis=0),
                node("Expand", ["h0", "rows"], "h"),
                node("Expand", ["c0", "rows"], "c"),
                helper.make_node(
                    "LSTM",
                    ["x", "lw", "lr", "lb", "", "h", "c", "p"],
                    ["y", "last", "cell"],
                    hidden_size=4,
                    direction="reverse",
                    name="l",
                ),
                node("Add", ["last", "cell"], "both"),
                node("Squeeze", ["both", "zero"], "out"),
            ],
            [*gates, *first, *spread, weight("p", 1, 12), ints("zero", 0)],
            [4, "batch", 3],
        ),
    }


def windows() -> dict[str, Any]:
    columns = [ints("image", 5, 6), ints("block", 2, 3)]
    return {
        "holes": model(
            [
                node("Conv", ["x", "w"], "c", pads=[1] * 4),
                node("MaxPool", ["c"], "m", kernel_shape=[2, 3], dilations=[3, 2]),
                node(
                    "AveragePool",
                    ["m"],
                    "a",
                    kernel_shape=[3, 2],
                    dilations=[1, 2],
                    strides=[2, 1],
                    pads=[2, 0, 2, 1],
                    ceil_mode=1,
                ),
                node("Flatten", ["a"], "out"),
            ],
            [weight("w", 4, 3, 3, 3)],
            ["batch", 3, 11, 12],
            opset=19,
        ),
        "columns": model(
            [
                node("Conv", ["x", "w"], "c"),
                node(
                    "Col2Im",
                    ["c", "image", "block"],
                    "i",
                    strides=[2, 1],
                    pads=[0, 1, 1, 0],
                ),
                node("Flatten", ["i"], "out"),
            ],
            [weight("w", 12, 3, 1), *columns],
            ["batch", 3, 15],
            opset=18,
        ),
        "groups": model(  # what ONNX's reference computes wrong, or in float32
            [
                node("Selu", ["x"], "s"),
                node(
                    "ConvTranspose",
                    ["s", "w", "b"],
                    "c",
                    strides=[2, 1],
                    group=2,
                ),
                node("Mod", ["c", "half"], "m", fmod=1),
                node("Flatten", ["m"], "out"),
            ],
            [
                weight("w", 4, 3, 3, 2),
                weight("b", 6),
                table("half", np.array(0.7, np.float32)),
            ],
            ["batch", 4, 3, 5],
        ),
        "smaller": model(
            [
                node("Conv", ["x", "w"], "c"),
                node("Resize", ["c", "", "half"], "s", mode="linear", antialias=1),
                node(
                    "Resize",
                    ["s", "region", "", "sizes"],
                    "r",
                    mode="linear",
                    axes=[2, 3],
                    coordinate_transformation_mode="tf_crop_and_resize",
                    extrapolation_value=2.0,
                ),
                node("CenterCropPad", ["r", "around"], "o", axes=[2, 3]),
                node("Flatten", ["o"], "out"),
            ],
            [
                weight("w", 2, 3, 1, 1),
                table("half", np.array([1, 1, 0.5, 0.6], np.float32)),
                table("region", np.array([0.1, -0.3, 0.9, 0.8], np.float32)),
                ints("sizes", 4, 5),
                ints("around", 3, 8),
            ],
            ["batch", 3, 10, 10],
            opset=18,
        ),
    }


def choices() -> dict[str, Any]:
    """Places of largest elements, products, angles."""
    return {
        "places": model(
            [
                node("MatMul", ["x", "w"], "h"),
                node("ArgMax", ["h"], "a", axis=2, keepdims=0),
                node("Gather", ["rows", "a"], "g"),
                node("ArgMin", ["h"], "i", axis=1, keepdims=1, select_last_index=1),
                node("Cast", ["i"], "n", to=F),
                node("Hardmax", ["h"], "m", axis=1),
                node("ReduceProd", ["h", "axes"], "p"),
                node("CumProd", ["h", "axis"], "c", exclusive=1, reverse=1),
                node("Sum", ["g", "n", "m", "p", "c"], "out"),
            ],
            [
                weight("w", 6, 6),
                weight("rows", 6, 6),
                ints("axes", 1, 2),
                table("axis", np.array(2, np.int64)),
            ],
            ["batch", 4, 6],
            opset=26,
        ),
        "counts": model(
            [
                node("Less", ["zero", "x"], "b"),
                node("Cast", ["b"], "i", to=I),
                node("ReduceSum", ["i", "axes"], "n", keepdims=1),
                node("ReduceMax", ["i", "axes"], "any", keepdims=1),
                node("Clip", ["n", "one"], "m"),
                node("Cast", ["m"], "f", to=F),
                node("Cast", ["any"], "a", to=F),
                node("MatMul", ["x", "w"], "h"),
                node("Div", ["h", "f"], "d"),
                node("Add", ["d", "a"], "out"),
            ],
            [
                weight("w", 6, 6),
                ints("axes", 1, 2),
                table("one", np.array(1, np.int64)),
                table("zero", np.array(0.7, np.float32)),
            ],
            ["batch", 4, 6],
            opset=18,
        ),
        "ordered": model(
            [
                node("MatMul", ["x", "w"], "h"),
                helper.make_node("TopK", ["h", "k"], ["v", "i"], axis=1, largest=0),
                node("Gather", ["rows", "i"], "g"),
                node("ReduceSum", ["g", "last"], "s", keepdims=0),
                node("Add", ["v", "s"], "out"),
            ],
            [weight("w", 6, 6), weight("rows", 4, 3), ints("k", 3), ints("last", -1)],
            ["batch", 4, 6],
            opset=18,
        ),
        "angles": model(
            [
                node("Tanh", ["x"], "t"),
                node("Mul", ["t", "w"], "s"),
                node("Asin", ["s"], "a"),
                node("Acos", ["s"], "c"),
                node("Atan", ["x"], "u"),
                node("Sum", ["a", "c", "u"], "out"),
            ],
            [table("w", np.linspace(0.2, 0.9, 5).astype(np.float32))],
            ["batch", 5],
        ),
        "einsum": model(
            [
                node("Einsum", ["x", "a"], "one", equation="bij,kj->bki"),
                node("Einsum", ["one", "x"], "two", equation="bki,bil->bkl"),
                node("Einsum", ["two"], "out", equation="bkk->bk"),
            ],
            [weight("a", 4, 4)],
            ["batch", 3, 4],
        ),
        "rotary": model(
            [
                node("MatMul", ["x", "wq"], "q"),
                node("MatMul", ["x", "wk"], "k"),
                node("Shape", ["x"], "n", end=1),
                node("Concat", ["n", "place"], "shape", axis=0),
                node("Expand", ["cos_", "shape"], "cos"),
                node("Expand", ["sin_", "shape"], "sin"),
                node("RotaryEmbedding", ["q", "cos", "sin"], "rq", num_heads=4),
                node(
                    "RotaryEmbedding",
                    ["k", "cos", "sin"],
                    "rk",
                    num_heads=2,
                    interleaved=1,
                ),
                node(
                    "Attention",
                    ["rq", "rk", "k", "mask"],
                    "out",
                    q_num_heads=4,
                    kv_num_heads=2,
                    softcap=2.0,
                ),
            ],
            [
                weight("wq", 8, 16),
                weight("wk", 8, 8),
                table("cos_", np.cos(RNG.normal(size=(1, 5, 2))).astype(np.float32)),
                table("sin_", np.sin(RNG.normal(size=(1, 5, 2))).astype(np.float32)),
                table("mask", np.tri(5, dtype=bool)),
                ints("place", 5, 2),
            ],
            ["batch", 5, 8],
            opset=23,
        ),
    }


def stated(tensor: Any) -> Any:
    return helper.make_node("Constant", [], [tensor.name], value=tensor)


def trained() -> dict[str, Any]:
    """What layers read of weights, and what is computed from them."""
    w = [weight("l.w", 8, 8), weight("l.v", 8, 8)]
    half = table("half", np.array(0.5, np.float32))
    cuts = [ints("b0", 0), ints("e5", 5), ints("b3", 3), ints("e8", 8), ints("axis", 1)]
    variance = table("b.v", np.array([1, 2, 0.5, 1.5], np.float32))
    return {
        "parts": model(
            nodes_of("""
p q = Split l.w, sizes axis=1
a = MatMul x, p
b = MatMul x, q
s = Slice l.v, b0, e5, axis
c = MatMul x, s
i = Gather l.rows, places
j = ReduceSum i, b0 keepdims=0
k = Concat l.u, l.t axis=1
d = MatMul x, k
e = Concat a, b, c, d axis=1
out = Add e, j"""),
            [*w, *cuts, ints("sizes", 3, 5), ints("places", 2, 0, 1)]
            + [weight("l.rows", 4, 16), weight("l.u", 8, 1), weight("l.t", 8, 2)],
            ["batch", 8],
            opset=18,
        ),
        "whole": model(
            nodes_of("""
p = Slice l.w, b0, e5
q = Slice l.w, b3, e8
r = Slice x, b0, e5, axis
a = MatMul r, p
b = MatMul r, q
c = Gemm x, l.v transB=1
d = MatMul x, l.v
e = MatMul x, l.w
f = Gather l.w, places
g = ReduceSum f, b0 keepdims=0
out = Sum a, b, c, d, e, g"""),
            [*w, *cuts, ints("places", 3, 3, 1)],
            ["batch", 8],
            opset=18,
        ),
        "computed": model(
            nodes_of("""
n = ReduceL2 l.w, axis keepdims=1
m = Div l.w, n
o = Mul m, l.g
a = Gemm x, o, l.b transB=1
p = MatMul l.lora_b, l.lora_a
h = Mul p, half
s = Add l.v, h
b = MatMul x, s
t = Softmax l.mix
c = Mul x, t
u = Unsqueeze x, axis
k = Mul c.v, c.g
v = Conv u, k, c.b pads=2,2 dilations=2, group=1
d = ReduceMean v, axis keepdims=0
i = PRelu d, slope
y = Add l.ln, half
z = LayerNormalization x, y, l.shift
out = Sum a, b, c, i, z"""),
            [*w, half, ints("axis", 1), weight("l.g", 8, 1), weight("l.b", 8)]
            + [weight("l.lora_b", 8, 2), weight("l.lora_a", 2, 8), weight("l.mix", 8)]
            + [weight("c.v", 4, 1, 3), weight("c.g", 4, 1, 1), weight("c.b", 4)]
            + [weight("slope", 1), weight("l.ln", 8), weight("l.shift", 8)],
            ["batch", 8],
            opset=18,
        ),
        "stated": model(
            [stated(weight("c.w", 4, 3, 3, 3)), stated(weight("c.b", 4))]
            + [stated(weight(name, 4)) for name in ("b.w", "b.b", "b.m")]
            + [stated(variance), stated(weight("w", 1, 16, 4))]
            + [stated(weight("r", 1, 16, 4)), stated(weight("b", 1, 32))]
            + [stated(weight("fc", 4, 5)), stated(weight("fb", 5))]
            + [stated(weight("shift", 5))]
            + nodes_of("""
d = Conv x, c.w, c.b
n = BatchNormalization d, b.w, b.b, b.m, b.v
f = Reshape n, flat
t = Transpose f perm=2,0,1
y h = LSTM t, w, r, b hidden_size=4
s = Squeeze h, zero
m = MatMul s, fc
p = Add m, fb
q = Tanh p
out = Add q, shift"""),
            [ints("flat", 0, 4, 9), ints("zero", 0)],
            ["batch", 3, 5, 5],
            opset=18,
        ),
        # A cell from a state of zeros, called twice; a bias and a scale that an
        # exporter has merged, as they are equal.
        "merged": model(
            nodes_of("""
/z/s = Shape x start=0 end=1
/z/t = Concat /z/s, width axis=0
/z/h = ConstantOfShape /z/t
/c/i/Gemm = Gemm /z/h, l.w, c.b transB=1
/c/Add = Add /c/i/Gemm, x
/c_1/i/Gemm = Gemm /c/Add, l.w, c.b transB=1
/a/Mul = Mul /c_1/i/Gemm, onnx::Mul_9
/d/Mul = Mul /a/Mul, onnx::Mul_9
/d/Gemm = Gemm /d/Mul, l.v, c.b transB=1
out = Tanh /d/Gemm"""),
            [*w, ints("width", 8), table("c.b", np.zeros(8, np.float32))]
            + [table("onnx::Mul_9", np.ones((1, 8), np.float32))],
            ["batch", 8],
            opset=18,
        ),
        "kept": model(
            nodes_of("""
w = Mul l.w, half
e = Gather w, x
m = Slice l.mask, zero, four
a = Add e, m
p = Softmax a
b = MatMul p, l.v
c = MatMul b, onnx::copy
out = Mul c, alpha"""),
            [*w, half, ints("zero", 0), ints("four", 8)]
            + [table("l.mask", np.array([0] * 6 + [-np.inf] * 3, np.float32))]
            + [table("alpha", np.array([0.7], np.float32))]
            + [table("onnx::copy", numpy_helper.to_array(w[1]).T.copy())],
            ["batch", 4],
            kind=I,
            opset=18,
        ),
    }


def forms() -> dict[str, Any]:
    """Spellings of ops that the IR lacks."""
    w = weight("l.w", 8, 8)
    square = weight("c.w", 2, 3, 3, 3)
    lead = [weight("w", 2, 16, 3), weight("r", 2, 16, 4), weight("b", 2, 32)]
    gru = [weight("gw", 1, 12, 8), weight("gr", 1, 12, 4), weight("gb", 1, 24)]
    bn = [weight(name, 8) for name in ("b.w", "b.b", "b.m")]
    branches = [
        helper.make_graph(
            nodes_of(f"{name} = MatMul o, {name}.w"),
            name,
            [],
            [helper.make_tensor_value_info(name, F, None)],
            [weight(f"{name}.w", 8, 3)],
        )
        for name in ("then", "else")
    ]
    return {
        "still": model(
            nodes_of("""
                size = Shape x start=0 end=1
                weight = Tile n.weight, size
                bias = Tile n.bias, size
                mean = Tile n.mean, size
                var = Tile n.var, size
                flat = Reshape x, one
                normal = BatchNormalization flat, weight, bias, mean, var
                out = Reshape normal, back
            """),
            [
                *(weight(f"n.{name}", 3) for name in ("weight", "bias", "mean")),
                table("n.var", np.array([0.5, 2, 1.5], dtype=np.float32)),
                ints("one", 1, -1, 4),
                ints("back", -1, 3, 4),
            ],
            ["n", 3, 4],
        ),
        "fresh": model(  # norms before training, of torch.nn.Sequential and an exporter's; a bound
            nodes_of("""
own = LayerNormalization x, 1.weight, 1.bias
above = Greater own, threshold_cast
soft = Softplus own
kept = Where above, own, soft
out = LayerNormalization kept, 7, 8"""),
            [
                table("threshold_cast", np.array(20, np.float32)),
                *(table(n, np.ones(4, np.float32)) for n in ("1.weight", "7")),
                *(table(n, np.zeros(4, np.float32)) for n in ("1.bias", "8")),
            ],
            ["n", 3, 4],
            opset=17,
        ),
        "padded": model(
            nodes_of("""
a = Pad x, p mode=reflect
b = Pad a, p mode=edge
c = Pad b, p mode=wrap
out = Conv c, c.w"""),
            [square, ints("p", 0, 0, 2, 1, 0, 0, 1, 3)],
            ["batch", 3, 5, 6],
            opset=19,
        ),
        "put": model(
            nodes_of("""
h = MatMul x, l.w
t = Transpose h perm=1,0,2
u = Gather t, two
v = Tanh u
s = ScatterND t, places, v
g = GatherND s, places
e = ScatterElements l.k, column, l.u axis=1
a = Transpose g perm=1,0,2
c = CumSum ones, zero
p = Sub c, ones
q = Gather l.table, p
b = Add a, e
out = Add b, q"""),
            [w, ints("two", 2, 0), table("places", np.array([[3], [1]]))]
            + [weight("l.k", 2, 8), table("column", np.array([[5], [5]]))]
            + [weight("l.u", 2, 1), ints("ones", 1, 1), table("zero", np.array(0))]
            + [weight("l.table", 3, 8)],
            ["batch", 4, 8],
            opset=18,
        ),
        "named": model(
            nodes_of("""
a = MatMul x, l.w
u = Unsqueeze p, last
w = Expand u, wide
g = GatherElements a, w axis=1
f = Unsqueeze p, one
t = Transpose a perm=0,2,1
v = Expand f, tall
h = GatherElements t, v axis=2
i = Transpose h perm=0,2,1
n = GatherND a, u batch_dims=1
s = Add g, n
k = ScatterElements zeros, w, s axis=1 reduction=add
r = ScatterElements a, w, i axis=1 reduction=add
out = Mul k, r"""),
            [
                w,
                ints("last", 2),
                ints("one", 1),
                ints("wide", 1, 1, 8),
                ints("tall", 1, 8, 1),
            ]
            + [table("zeros", np.zeros((3, 6, 8), np.float32))],
            [3, 6, 8],
            opset=18,
            more=[("p", I, [3, 4])],
        ),
        "rows_lead": model(
            nodes_of("""
l h c = LSTM x, w, r, b hidden_size=4 layout=1 direction=bidirectional
f = Reshape l, flat
k = Gather h, zero axis=1
i = Unsqueeze k, one
g j = GRU f, gw, gr, gb, , i hidden_size=4 layout=1 linear_before_reset=1
out = Squeeze j, one"""),
            [*lead, *gru, ints("flat", 0, 5, 8), ints("one", 1)]
            + [table("zero", np.array(0))],
            ["batch", 5, 3],
        ),
        "masks": model(
            nodes_of("""
e = Gather l.w, x
c = Cast mask to=1
d = Sub one, c
g = Mul d, low
f = Where bits, zero, low
q = Equal x, pad
o = Or q, tail
r = Where o, low, zero
s = Sum g, f, r
p = Softmax s
u = Unsqueeze p, axis
m = MatMul u, e
out = Squeeze m, axis"""),
            [w, ints("axis", 1), table("pad", np.array(1))]
            + [table("tail", np.arange(5) > 3)]
            + [
                table(k, np.float32(v))
                for k, v in (("one", 1), ("zero", 0), ("low", -9))
            ],
            ["batch", 5],
            kind=I,
            more=[("mask", I, ["batch", 5]), ("bits", TensorProto.BOOL, ["batch", 5])],
        ),
        "rows": model(  # of the batch and of something else
            [
                *nodes_of("""
m = Reshape x, merged
n = BatchNormalization m, b.w, b.b, b.m, b.v
h = HardSwish n
o = Reshape h, back"""),
                helper.make_node(
                    "If",
                    ["yes"],
                    ["out"],
                    then_branch=branches[0],
                    else_branch=branches[1],
                ),
            ],
            [*bn, table("b.v", np.linspace(0.5, 2, 8).astype(np.float32))]
            + [ints("merged", -1, 8), ints("back", -1, 4, 8)]
            + [table("yes", np.array(True))],
            [-1, 4, 8],
        ),
    }


def greedy() -> dict[str, Any]:
    """Sizes and lengths of a few bytes that ask for more than a machine has."""
    whole = (1 << 63) - 1

    def of(what: str, *constants: Any, kind: int = I) -> Any:
        """x + a number that is computed from constants."""
        lines = f"{what}\nb = Cast a to=1\nc = ReduceSum b keepdims=0\nout = Add x, c"
        return model(nodes_of(lines), list(constants), ["n", 3])

    return {
        "endless": of("a = Range s, l, d", *scalars(s=-whole, l=whole, d=1)),
        "stands": of("a = Range s, l, d", *scalars(s=0, l=5, d=0)),
        "mixed": of(
            "a = Range s, l, d",
            *scalars(s=0, l=5),
            numpy_helper.from_array(np.array(1, dtype=np.float32), "d"),
        ),
        "wide": of("a = ConstantOfShape s", ints("s", 1 << 20, 1 << 20)),
        "hollow": of(
            "z = ConstantOfShape s\na = Concat z, z axis=0", ints("s", 1 << 40, 0)
        ),
        "tiled": of("a = Tile s, t", ints("s", 1), ints("t", 1 << 30)),
        "halves": of("a b2 = Split s, t", ints("s", 1, 2), ints("t", 1, whole)),
        "split_up": of("a = Split s num_outputs=9223372036854775807", ints("s", 1, 2)),
        "product": of(
            "p = ConstantOfShape s\nq = ConstantOfShape t\na = Add p, q",
            ints("s", 1 << 14, 1),
            ints("t", 1 << 14),
        ),
        "picked": of(
            "p = ConstantOfShape s\nq = ConstantOfShape t\nr = Cast q to=7\na = Gather p, r",
            ints("s", 2, 1 << 14),
            ints("t", 1 << 14),
        ),
        "ranks": of("a = Reshape s, t", ints("s", 1), ints("t", *[1] * 100)),
        "unsqueezed": of("a = Unsqueeze s, t", ints("s", 1), ints("t", *range(100))),
    }


def scalars(**numbers: int) -> list[Any]:
    return [
        numpy_helper.from_array(np.array(number, dtype=np.int64), name)
        for name, number in numbers.items()
    ]


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
        **greedy(),
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
        "optimised": model(
            [
                helper.make_node(
                    "FusedMatMul", ["x", "w"], ["out"], domain="com.microsoft"
                )
            ],
            [weight("w", 3, 4)],
            ["n", 3],
        ),
        "lengths": model(
            nodes_of("out = LSTM x, w, r, , lens hidden_size=4"),
            [weight("w", 1, 16, 3), weight("r", 1, 16, 4)],
            [5, "batch", 3],
            more=[("lens", TensorProto.INT32, ["batch"])],
        ),
        "two_outputs": model(
            [identity, node("Relu", ["x"], "other")],
            [],
            ["n", 3],
            outputs=["out", "other"],
        ),
        "several": model(
            nodes_of("""
                turned = Transpose x perm=1,0,2
                masks = Relu turned
                sum = ReduceSum x, one keepdims=0
                scores = Gemm sum, w, b
                best:1 = ReduceMax scores axes=1, keepdims=0
                same = Identity scores
                kept = Relu w
            """),
            [weight("w", 4, 5), weight("b", 1), ints("one", 1)],
            ["n", 3, 4],
            outputs=["masks", "scores", "best:1", "same", "kept"],
        ),
        "over_the_batch": model([node("Softmax", ["x"], "out", axis=0)], [], ["n", 3]),
        **{
            name: model(
                [node("GatherElements", ["x", "p"], "out", axis=axis)],
                [],
                [3, 4, 5],
                more=[("p", I, [3, 2, 1] if axis else [3, 4, 5])],
            )
            for name, axis in (("narrow", 1), ("across", 0))
        },
        "old": model([node("Cast", ["x"], "out", to=1)], [], ["n", 3], opset=5),
        "open": model([identity], [], ["n", "length"]),
        "unsupported": model(
            [
                node("Det", ["x"], "a"),
                node("Compress", ["x", "k"], "b"),
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
    proven = good() | sequences() | windows() | choices() | trained() | forms()
    for name, made in [*proven.items(), *bad().items(), ("chain", chain(10000))]:
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
