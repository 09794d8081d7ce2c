"""The table's rows for layers of Keras.

A row maps a layer by what it is, from its own settings, and not by tracing its `call`:
the trace of one convolution is dozens of ops of the backend, and no reader would find
the layer again in the emitted script. Layers without a row are traced. Whatever a row
gets wrong is found by the proof in float64, so rows need no tests of their own numbers,
but must refuse settings that they do not know in place of ignoring them.

The first line of a row's documentation says what it becomes; docs/import.md is made
from it (``python -m bakeoff_import --table keras``).
"""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import numpy as np

from bakeoff_import.graph import ir_word
from bakeoff_import.keras_tensor import FIRST, FLAT, PLAIN, ROW, Held
from bakeoff_import.keras_walk import (
    REFUSED,
    Call,
    Walk,
    array_formed,
    layer,
    to_numpy,
)
from bakeoff_import.problems import Unsupported
from bakeoff_import.steps import (
    channels_scaled,
    global_pool,
    grouped_norm,
    pool_made,
    product,
    resized,
    transposed_by_product,
)
from bakeoff_import.values import Layout, Shape, Value

# ---- activations

# Functions of keras.activations that are an op with its default attributes.
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("relu", {}),
    "relu6": ("clip", {"least": 0.0, "most": 6.0}),
    "tanh": ("tanh", {}),
    "sigmoid": ("sigmoid", {}),
    "gelu": ("gelu", {"form": "erf"}),
    "silu": ("silu", {}),
    "elu": ("elu", {"alpha": 1.0}),
    "selu": ("selu", {}),
    "softplus": ("softplus", {}),
    "softsign": ("softsign", {}),
    "leaky_relu": ("leaky_relu", {"slope": 0.2}),
    "hard_sigmoid": ("hard_sigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "hard_silu": ("hard_swish", {}),
    "mish": ("mish", {}),
    "exponential": ("exp", {}),
    "log_sigmoid": ("log_sigmoid", {}),
}


def activated(m: Walk, x: Held, function: Any) -> Held:
    """What an activation computes: one of Keras by its name, another by its trace."""
    name = getattr(function, "__name__", "")
    own = str(getattr(function, "__module__", "")).startswith("keras.")
    if function is None or (own and name == "linear"):
        return x
    if own and name in _ACTIVATIONS:
        op, attrs = _ACTIVATIONS[name]
        return m.one(op, x, **attrs)
    if own and name == "softmax":
        return softmax(m, x, -1)
    if isinstance(function, m.keras.Layer):
        return m.call(function, (x,), {}, m.training)  # type: ignore[no-any-return]
    return m.traced_function(function, (x,), {}, m.training)  # type: ignore[no-any-return]


def softmax(m: Walk, x: Held, axis: Any, op: str = "softmax") -> Held:
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(axes) != 1:
        raise Unsupported("takes the softmax over several axes", "reshape before it")
    if x.form in (FLAT, ROW):
        x = Held(m.plain(x))
    at = x.value.layout.ir_axis(x.laid(axes[0]))
    return Held(m.unary(op, x.value, axis=at), x.form)


@layer("Activation")
def activation(m: Walk, op: Any, a: Call) -> Held:
    """the op of its function"""
    return activated(m, m.held(a.first), op.activation)


@layer("ReLU")
def relu(m: Walk, op: Any, a: Call) -> Held:
    """`relu`, `leaky_relu`, `clip`"""
    slope, most, threshold = op.negative_slope, op.max_value, op.threshold
    if float(threshold or 0) != 0 or (float(slope or 0) != 0 and most is not None):
        raise Unsupported("has a threshold", "keras.ops.where")
    if most is not None:
        return m.one("clip", a.first, least=0.0, most=float(most))
    if float(slope or 0) != 0:
        return m.one("leaky_relu", a.first, slope=float(slope))
    return m.one("relu", a.first)


@layer("LeakyReLU")
def leaky_relu(m: Walk, op: Any, a: Call) -> Held:
    """`leaky_relu`"""
    return m.one("leaky_relu", a.first, slope=float(op.negative_slope))


@layer("ELU")
def elu(m: Walk, op: Any, a: Call) -> Held:
    """`elu`"""
    return m.one("elu", a.first, alpha=float(op.alpha))


@layer("PReLU")
def prelu(m: Walk, op: Any, a: Call) -> Held:
    """`relu`(x) - alpha * `relu`(-x)"""
    x = m.held(a.first)
    negative = m.one("relu", m.one("neg", x))
    scaled = m.pointwise("mul", negative, op.alpha)
    return m.pointwise("sub", m.one("relu", x), scaled)


@layer("Softmax")
def softmax_layer(m: Walk, op: Any, a: Call) -> Held:
    """`softmax`"""
    return softmax(m, m.held(a.first), op.axis)


@layer("Identity", "InputLayer")
def identity(m: Walk, op: Any, a: Call) -> Any:
    """nothing"""
    return a.first


# ---- dense layers and tables


def kernel_of(op: Any) -> Any:
    """The variable, where `kernel` may be one that is computed of it."""
    return op._kernel if hasattr(op, "_kernel") else op.kernel


def dense_of(m: Walk, x: Held, kernel: Any, bias: Any) -> Held:
    """x kernel + bias over the last axis; kernel: I,O."""
    picture = x.form == FLAT
    v = x.value if picture else m.plain(x)
    if v.layout.n == v.layout.rank - 1:
        raise Unsupported("works along the batch axis", "keep the rows apart")
    inside, outside = (int(s) for s in kernel.shape)
    steps: list[Any] = [("transpose", (1, 0))]
    if picture:  # the kernel's rows in the order C,H,W
        c, *space = x.picture
        steps = [
            ("transpose", (1, 0)),
            ("reshape", (outside, *space, c)),
            ("transpose", (0, len(space) + 1, *range(1, len(space) + 1))),
            ("reshape", (outside, inside)),
        ]
    layout = v.layout.sized(v.layout.rank - 1, outside)
    try:
        weight = m.slot(kernel, *steps)
    except Unsupported:  # another layer reads it in another form
        out = product(m, m.plain(x), m.variable(kernel))
        held = Held(out)
        return held if bias is None else m.pointwise("add", held, bias)
    slots = [("weight", weight)]
    if bias is not None:
        slots.append(("bias", m.slot(bias)))
    return Held(m.made("linear", [v], layout, params=slots))


@layer("Dense")
def dense(m: Walk, op: Any, a: Call) -> Held:
    """`linear`"""
    out = dense_of(m, m.held(a.first), kernel_of(op), op.bias if op.use_bias else None)
    return activated(m, out, op.activation)


@layer("Embedding")
def embedding(m: Walk, op: Any, a: Call) -> Held:
    """`embedding`"""
    ids = m.value(a.first)
    if ids.dtype == "f32" and ids.name in m.graph.input_shapes:
        raise Unsupported(
            "takes its ids from an input of floats", "keras.Input(..., dtype='int32')"
        )
    if ids.dtype != "i32":
        ids = m.unary("cast", ids, "i32", to="i32")
    lay = ids.layout
    width = int(op._embeddings.shape[1])
    layout = Layout((*lay.shape, width), lay.n, lay.before, lay.after)
    slots = [("weight", m.slot(op._embeddings))]
    return Held(m.made("embedding", [ids], layout, params=slots))


# ---- convolutions


def pairs(value: Any, count: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return [int(v) for v in (values * count if len(values) == 1 else values)]


def same_pads(
    sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """padding="same": what lies before and behind each axis."""
    pads = []
    for size, span, stride in zip(sizes, spans, strides):
        total = max((-(-size // stride) - 1) * stride + span - size, 0)
        pads += [total // 2, total - total // 2]
    return pads


def spatial(m: Walk, arg: Any, op: Any, count: int) -> tuple[Held, str]:
    """The input of a layer over `count` axes, channels first, and the form of its
    result; one axis is that of pictures of height 1."""
    x = m.held(arg)
    ahead = op.data_format == "channels_first"
    if ahead:
        v = m.rows_apart(x, count + 2)
        if count == 1 and m.tall:
            v = m.reshaped(v, Layout((1, v.shape[1], 1, v.shape[2]), 0))
        return Held(v), PLAIN
    x = m.row(x) if count == 1 else m.first(x)
    v = m.spread_out(x.value)
    return Held(v, x.form), x.form


def spatial_result(m: Walk, v: Value, form: str, count: int) -> Held:
    if form == PLAIN and count == 1 and m.tall:
        return Held(m.reshaped(v, Layout((1, v.shape[1], v.shape[3]), 0)))
    return Held(v, form)


def _absorbed(m: Walk, x: Value) -> tuple[Value, list[int]]:
    """The value before a padding with zeros in front of a convolution, and its pads."""
    made = m.graph.by_output.get(x.name)
    if made is None or made.op != "pad" or made.attrs.get("value", 0.0) != 0.0:
        return x, [0, 0, 0, 0]
    pads: Any = made.attrs["pad"]
    if any(pads[:2]) or len(pads) != 6 or min(pads) < 0:
        return x, [0, 0, 0, 0]
    sizes = (
        *x.shape[:2],
        x.shape[2] - pads[2] - pads[3],
        x.shape[3] - pads[4] - pads[5],
    )
    return Value(made.inputs[0], Layout(sizes, 0)), list(pads[2:])


def convolved(
    m: Walk,
    x: Value,
    weight: str,
    bias: Optional[str],
    kernel: Sequence[int],
    outside: int,
    strides: Sequence[int],
    dilation: Sequence[int],
    padding: str,
    groups: int,
) -> Value:
    """A convolution of N,C,H,W."""
    count = len(kernel)
    if count == 3 and not m.known("conv3d"):
        raise Unsupported("needs the op 'conv3d', which the IR lacks", "Conv2D")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    sizes = x.shape[2:]
    if padding == "same":
        pads = same_pads(sizes, spans, strides)
    elif padding == "causal":
        pads = [0] * (2 * count - 2) + [spans[-1] - 1, 0]
    else:
        pads = [0] * (2 * count)
    out = [
        (size + pads[2 * i] + pads[2 * i + 1] - span) // stride + 1
        for i, (size, span, stride) in enumerate(zip(sizes, spans, strides))
    ]
    if count == 2:
        x, more = _absorbed(m, x)
        pads = [p + q for p, q in zip(pads, more)]
    slots = [("weight", weight)] + ([("bias", bias)] if bias is not None else [])
    return m.made(
        f"conv{count}d",
        [x],
        Layout((x.shape[0], outside, *out), 0),
        params=slots,
        stride=list(strides),
        pad=pads,
        dilation=list(dilation),
        groups=groups,
    )


def _tall(m: Walk, values: Sequence[int]) -> list[int]:
    """Numbers for each axis; of a layer over one axis, as those of a picture, where the
    IR has no such layer."""
    values = [int(v) for v in values]
    return [1, *values] if len(values) == 1 and m.tall else values


def _conv_kernel(m: Walk, kernel: Any, count: int) -> str:
    """H,W,I,O to O,I,H,W."""
    perm = (count + 1, count, *range(count))
    steps: list[Any] = [("transpose", perm)]
    if count == 1 and m.tall:
        k, inside, outside = (int(s) for s in kernel.shape)
        steps.append(("reshape", (outside, inside, 1, k)))
    return m.slot(kernel, *steps)


@layer("Conv1D", "Conv2D", "Conv3D")
def conv(m: Walk, op: Any, a: Call) -> Held:
    """`conv2d`, `conv3d`; of one axis: `conv2d` of pictures of height 1"""
    count = int(op.rank)
    x, form = spatial(m, a.first, op, count)
    v = convolved(
        m,
        x.value,
        _conv_kernel(m, kernel_of(op), count),
        m.slot(op.bias) if op.use_bias else None,
        _tall(m, op.kernel_size),
        int(op.filters),
        _tall(m, op.strides),
        _tall(m, op.dilation_rate),
        op.padding,
        int(op.groups),
    )
    return activated(m, spatial_result(m, v, form, count), op.activation)


def _depthwise(
    m: Walk, op: Any, x: Value, kernel: Any, bias: Optional[str], strides: Any
) -> Value:
    """Kernel H,W,C,M to C*M,1,H,W."""
    count = len(kernel.shape) - 2
    *size, channels, times = (int(s) for s in kernel.shape)
    steps = [
        ("transpose", (count, count + 1, *range(count))),
        ("reshape", (channels * times, 1, *_tall(m, size))),
    ]
    return convolved(
        m,
        x,
        m.slot(kernel, *steps),
        bias,
        _tall(m, size),
        channels * times,
        _tall(m, pairs(strides, count)),
        _tall(m, pairs(op.dilation_rate, count)),
        op.padding,
        channels,
    )


@layer("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise_conv(m: Walk, op: Any, a: Call) -> Held:
    """`conv2d` with a group for each channel"""
    count = int(op.rank)
    x, form = spatial(m, a.first, op, count)
    bias = m.slot(op.bias) if op.use_bias else None
    v = _depthwise(m, op, x.value, op.kernel, bias, op.strides)
    return activated(m, spatial_result(m, v, form, count), op.activation)


@layer("SeparableConv1D", "SeparableConv2D")
def separable_conv(m: Walk, op: Any, a: Call) -> Held:
    """two `conv2d`: each channel alone, then all at each place"""
    count = int(op.rank)
    x, form = spatial(m, a.first, op, count)
    v = _depthwise(m, op, x.value, op.depthwise_kernel, None, op.strides)
    kernel = op.pointwise_kernel
    ones = _tall(m, [1] * count)
    v = convolved(
        m,
        v,
        _conv_kernel(m, kernel, count),
        m.slot(op.bias) if op.use_bias else None,
        ones,
        int(kernel.shape[-1]),
        ones,
        ones,
        "valid",
        1,
    )
    return activated(m, spatial_result(m, v, form, count), op.activation)


@layer("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def conv_transpose(m: Walk, op: Any, a: Call) -> Held:
    """`conv_transpose2d`, or a product and sums of its tiles"""
    count = int(op.rank)
    if (
        op.output_padding is not None
        or count == 3
        or int(getattr(op, "groups", 1)) != 1
    ):
        raise Unsupported(
            "has output_padding, groups or three axes", "UpSampling, Conv"
        )
    if any(int(d) != 1 for d in op.dilation_rate):
        raise Unsupported("dilates its kernel", "dilation_rate=1")
    if count == 1:
        m.tall, before = True, m.tall  # what is spelled for pictures
        try:
            return _conv_transposed(m, op, a, count)
        finally:
            m.tall = before
    return _conv_transposed(m, op, a, count)


def _conv_transposed(m: Walk, op: Any, a: Call, count: int) -> Held:
    x, form = spatial(m, a.first, op, count)
    strides, kernel = _tall(m, op.strides), _tall(m, op.kernel_size)
    sizes, pads, more = [], [], []
    for size, k, s in zip(x.value.shape[2:], kernel, strides):
        full = (size - 1) * s + k
        out = size * s if op.padding == "same" else size * s + max(k - s, 0)
        total = max(full - out, 0)
        sizes.append(out)
        pads.append((total // 2, total - total // 2))
        more.append(max(out - full, 0))
    steps: list[Any] = [("transpose", (count + 1, count, *range(count)))]
    if count == 1:
        k, outside, inside = (int(s) for s in kernel_of(op).shape)
        steps.append(("reshape", (inside, outside, 1, k)))
    slot = m.slot(kernel_of(op), *steps)
    layout = Layout((1, int(op.filters), *sizes), 0)
    if m.known("conv_transpose2d"):
        slots = [("weight", slot)]
        if op.use_bias:
            slots.append(("bias", m.slot(op.bias)))
        v = m.made(
            "conv_transpose2d",
            [x.value],
            layout,
            params=slots,
            stride=strides,
            pad=[p for pair in pads for p in pair],
            dilation=[1, 1],
            groups=1,
            output_pad=more,
        )
    else:
        weight = m._parameter(slot, tuple(m.graph.parameters[slot].tensor.shape))
        ahead = [pair[0] for pair in pads]
        v = transposed_by_product(m, x.value, weight, strides, ahead, layout)
        if op.use_bias:
            v = channels_scaled(m, v, None, m.variable(op.bias))
    return activated(m, spatial_result(m, v, form, count), op.activation)


# ---- pools


def pooled(
    m: Walk, x: Value, name: str, size: Any, strides: Any, padding: str, count: int
) -> Value:
    kernel = _tall(m, pairs(size, count))
    stride = _tall(m, pairs(strides if strides is not None else size, count))
    sizes = x.shape[2:]
    if padding == "same":
        pads = same_pads(sizes, kernel, stride)
    else:
        pads = [0] * (2 * len(kernel))
    out = [
        (s + pads[2 * i] + pads[2 * i + 1] - kernel[i]) // stride[i] + 1
        for i, s in enumerate(sizes)
    ]
    attrs: dict[str, Any] = {"kernel": kernel, "stride": stride, "pad": pads}
    if name == "avg":
        attrs["count_include_pad"] = False
        uneven = any(pads[2 * i] != pads[2 * i + 1] for i in range(len(sizes)))
        if uneven and m.keras.backend.backend() == "torch":
            raise Unsupported(
                "pads unevenly, and Keras on torch computes other means there than on "
                "TensorFlow and JAX",
                "'import tensorflow' or 'import jax' in the file chooses the backend",
            )
    layout = Layout((*x.shape[:2], *out), 0)
    op = f"{name}_pool{len(kernel)}d"
    if len(kernel) == 3 and not m.known(op):
        raise Unsupported(f"needs the op '{op}', which the IR lacks")
    return pool_made(m, op, x, layout, attrs)


@layer("MaxPooling1D", "MaxPooling2D", "MaxPooling3D")
def max_pool(m: Walk, op: Any, a: Call) -> Held:
    """`max_pool2d`; padding="same" too"""
    return _pool(m, op, a, "max")


@layer("AveragePooling1D", "AveragePooling2D", "AveragePooling3D")
def avg_pool(m: Walk, op: Any, a: Call) -> Held:
    """`avg_pool2d`; padding="same" too"""
    return _pool(m, op, a, "avg")


def _pool(m: Walk, op: Any, a: Call, name: str) -> Held:
    count = len(op.pool_size)
    x, form = spatial(m, a.first, op, count)
    v = pooled(m, x.value, name, op.pool_size, op.strides, op.padding, count)
    return spatial_result(m, v, form, count)


def _space(op: Any, rank: int) -> list[int]:
    ahead = op.data_format == "channels_first"
    return list(range(2, rank)) if ahead else list(range(1, rank - 1))


@layer("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D")
def global_average(m: Walk, op: Any, a: Call) -> Held:
    """`global_avg_pool2d`; of other ranks `mean`"""
    x = m.held(a.first)
    if x.rank == 4:
        ahead = op.data_format == "channels_first"
        first = m.rows_apart(x, 4) if ahead else m.spread_out(m.first(x).value)
        v = global_pool(m, first, bool(op.keepdims))
        return Held(v, FIRST if op.keepdims and not ahead else PLAIN)
    return m.reduce("mean", x, _space(op, x.rank), bool(op.keepdims))


@layer("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D")
def global_max(m: Walk, op: Any, a: Call) -> Held:
    """`max`"""
    x = m.held(a.first)
    return m.reduce("max", x, _space(op, x.rank), bool(op.keepdims))


# ---- norms


def _trains_statistics(m: Walk, op: Any, a: Call) -> bool:
    """Whether a batch norm takes the batch's statistics in training mode."""
    own = bool(a.training) and bool(op.trainable)
    if m.known_modes is None:
        m.norm_modes.append(own)
        return own
    at = len(m.norm_modes)
    trained = bool(m.known_modes[at]) if at < len(m.known_modes) else False
    m.norm_modes.append(trained)
    if own:
        raise Unsupported(
            "takes the batch's statistics in inference too", "training=None at its call"
        )
    return trained


def _affine(
    m: Walk, base: str, sizes: Shape, gamma: Any, beta: Any
) -> list[tuple[str, str]]:
    """Slots of scale and shift; frozen ones and zeros where the layer has none."""
    slots = []
    for slot, variable, number in (("weight", gamma, 1.0), ("bias", beta, 0.0)):
        if variable is None:
            name = f"{base}.{'ones' if number else 'zeros'}"
            slots.append((slot, m.filled(name, sizes, number)))
        else:
            slots.append((slot, m.slot(variable)))
    return slots


def _new_weight(momentum: float) -> float:
    """Keras's momentum is the weight of the old statistics."""
    exact = 1 - momentum
    rounded = float(f"{exact:.12g}")
    return rounded if abs(rounded - exact) < 1e-15 else exact


@layer("BatchNormalization")
def batch_norm(m: Walk, op: Any, a: Call) -> Held:
    """`batch_norm`, with Keras's momentum and variance; frozen: `sub`, `mul`, `add`"""
    if op.renorm:
        raise Unsupported("renormalises (renorm=True)", "renorm=False")
    held = m.held(a.first)
    axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
    if len(axes) != 1:
        raise Unsupported("normalises over several axes", "one axis")
    axis, rank = held.axis(axes[0]), held.rank
    statistics = _trains_statistics(m, op, a)
    gamma = op.gamma if op.scale else None
    beta = op.beta if op.center else None
    if not statistics:
        return _frozen_norm(m, op, held, axis, gamma, beta)
    if rank > 2 and axis == rank - 1:
        held = m.row(held) if rank == 3 else m.first(held)
    elif axis == 1:
        held = Held(m.plain(held))
    else:
        raise Unsupported(f"normalises axis {axis}", "axis=-1")
    v = m.batch_first(held.value)
    whole = v.layout
    if m.tall and v.layout.rank not in (2, 4):
        v = m.reshaped(v, Layout((1, v.shape[1], math.prod(v.shape[2:]), 1), 0))
    channels = (v.shape[1],)
    base = m.key(op.moving_mean).rpartition("/")[0].replace("/", ".")
    slots = _affine(m, base, channels, gamma, beta)
    for slot, variable in (("mean", op.moving_mean), ("var", op.moving_variance)):
        name = m.slot(variable)
        m.running[name] = op
        m.graph.parameters[name].frozen = False
        slots.append((slot, name))
    out = m.made(
        "batch_norm",
        [v],
        v.layout,
        params=slots,
        eps=float(op.epsilon),
        momentum=_new_weight(float(op.momentum)),
    )
    return Held(m.reshaped(out, whole), held.form)


def _frozen_norm(
    m: Walk, op: Any, held: Held, axis: int, gamma: Any, beta: Any
) -> Held:
    """With fixed statistics: a scale and a shift for each channel."""
    shape = [1] * held.rank
    shape[axis] = -1
    mean = m.array(op.moving_mean).reshape(shape)
    spread = m.array(op.moving_variance) + float(op.epsilon)
    out = m.pointwise("sub", held, mean)
    out = m.pointwise("mul", out, (1 / np.sqrt(spread)).reshape(shape))
    for kind, variable in (("mul", gamma), ("add", beta)):
        if variable is not None:
            value = m.variable(variable)
            sizes = tuple(s if s != -1 else value.shape[0] for s in shape)
            out = m.pointwise(kind, out, m.reshaped(value, Layout(sizes)))
    return out


def normalised(
    m: Walk,
    held: Held,
    axes: Sequence[int],
    gamma: Any,
    beta: Any,
    eps: float,
) -> Held:
    """A layer norm over the last axes."""
    v = m.plain(held)
    rank = v.layout.rank
    if sorted(axes) != list(range(rank - len(axes), rank)):
        raise Unsupported(f"normalises over axes {sorted(axes)}", "the last axes")
    if v.layout.n is not None and v.layout.n >= rank - len(axes):
        raise Unsupported("normalises over the batch")
    given = (("weight", gamma), ("bias", beta))
    slots = [
        (slot, m.slot(variable)) for slot, variable in given if variable is not None
    ]
    made = m.made("layer_norm", [v], v.layout, params=slots, dims=len(axes), eps=eps)
    return Held(made)


@layer("LayerNormalization")
def layer_norm(m: Walk, op: Any, a: Call) -> Held:
    """`layer_norm`"""
    if getattr(op, "rms_scaling", False):
        raise Unsupported("scales by the root mean square", "RMSNormalization")
    held = m.held(a.first)
    axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
    axes = [held.axis(axis) for axis in axes]
    gamma = op.gamma if op.scale else None
    beta = op.beta if op.center else None
    return normalised(m, held, axes, gamma, beta, float(op.epsilon))


@layer("GroupNormalization")
def group_norm(m: Walk, op: Any, a: Call) -> Held:
    """`group_norm`, or its formula"""
    held = m.held(a.first)
    axis = held.axis(int(op.axis))
    if axis == held.rank - 1 and held.rank in (3, 4):
        held = m.row(held) if held.rank == 3 else m.first(held)
    elif axis != 1:
        raise Unsupported(f"normalises axis {axis}", "axis=-1")
    v = m.batch_first(held.value)
    whole = v.layout
    if v.layout.rank != 4:
        v = m.reshaped(v, Layout((1, v.shape[1], math.prod(v.shape[2:]), 1), 0))
    groups = v.shape[1] if int(op.groups) == -1 else int(op.groups)
    gamma, beta = (op.gamma if op.scale else None), (op.beta if op.center else None)
    slots = []
    if m.known("group_norm"):
        pairs_ = (("weight", gamma), ("bias", beta))
        slots = [(slot, m.slot(w)) for slot, w in pairs_ if w is not None]
    scale, shift = (None if w is None else m.variable(w) for w in (gamma, beta))
    made = grouped_norm(m, v, groups, float(op.epsilon), scale, shift, slots)
    return Held(m.reshaped(made, whole), held.form)


@layer("RMSNormalization")
def rms_norm(m: Walk, op: Any, a: Call) -> Held:
    """`rms_norm`, or its formula"""
    held = m.held(a.first)
    axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
    v = m.plain(held)
    last = list(range(v.layout.rank - len(axes), v.layout.rank))
    if sorted(held.axis(axis) for axis in axes) != last or v.layout.n in last:
        raise Unsupported("normalises over other axes than the last", "axis=-1")
    eps = float(op.epsilon)
    if m.known("rms_norm"):
        attrs: dict[str, Any] = {"dims": len(axes), "eps": eps}
        slots = [("weight", m.slot(op.scale))]
        return Held(m.made("rms_norm", [v], v.layout, params=slots, **attrs))
    size = m.reduced("mean", m.unary("square", v), last, True)
    root = m.unary("rsqrt", m.binary("add", size, eps))
    return m.pointwise("mul", m.made("mul", [v, root], v.layout), op.scale)


@layer("Normalization")
def normalization(m: Walk, op: Any, a: Call) -> Held:
    """(x - mean) / deviation, frozen"""
    m.constants.update(id(v) for v in op.variables)
    mean, variance = m.array(op.mean), m.array(op.variance)
    eps = float(m.keras.config.epsilon())
    deviation = np.maximum(np.sqrt(variance), eps)
    if op.invert:
        return m.pointwise("add", mean, m.pointwise("mul", a.first, deviation))
    return m.pointwise("div", m.pointwise("sub", a.first, mean), deviation)


@layer("Rescaling")
def rescaling(m: Walk, op: Any, a: Call) -> Held:
    """`mul`, `add`"""
    x = m.held(a.first)
    x = Held(m.real(x.value), x.form, x.picture)
    scale, offset = np.asarray(op.scale), np.asarray(op.offset)
    if not (scale.size == 1 and float(scale.reshape(-1)[0]) == 1.0):
        x = m.pointwise("mul", x, scale)
    return m.pointwise("add", x, offset) if offset.any() else x


# ---- dropout


@layer("Dropout")
def dropout(m: Walk, op: Any, a: Call) -> Held:
    """`dropout`; with noise_shape `dropout` of ones, `mul`"""
    x = m.held(a.first)
    rate = float(op.rate)
    if not m.drops(rate, a.training):
        return x
    if x.n is None:
        raise Unsupported(
            "drops what has no rows: one mask for all", "drop what it is added to"
        )
    if op.noise_shape is None:
        return m.one("dropout", x, rate=rate)
    return dropped_ones(m, x, tuple(op.noise_shape), rate)


def dropped_ones(m: Walk, x: Held, shape: Sequence[Any], rate: float) -> Held:
    """x times dropout of ones, which have size 1 where the noise is shared."""
    sizes = tuple(
        1 if i == 0 else (x.shape[i] if s is None else int(s))
        for i, s in enumerate(shape)
    )
    if len(sizes) != x.rank or x.n != 0 or shape[0] == 1:
        raise Unsupported("shares its noise between rows", "noise for each row")
    if x.form == FLAT:
        x = Held(m.plain(x))
    laid = array_formed(np.ones(sizes), x.form, x.rank)
    layout = Layout(laid.shape, 0)
    rows = m.expand(m.laid(laid, layout), layout)
    mask = m.unary("dropout", rows, rate=rate)
    return m.pointwise("mul", x, Held(mask, x.form))


@layer("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D")
def spatial_dropout(m: Walk, op: Any, a: Call) -> Held:
    """`dropout` of ones for each channel, `mul`"""
    x = m.held(a.first)
    if not m.drops(op.rate, a.training):
        return x
    ahead = getattr(op, "data_format", "channels_last") == "channels_first"
    channel = 1 if ahead else x.rank - 1
    shape = [None if i in (0, channel) else 1 for i in range(x.rank)]
    return dropped_ones(m, x, shape, float(op.rate))


# ---- shapes


def reshaped(m: Walk, held: Held, shape: Sequence[int]) -> Held:
    """Keras's row-major reshape; `shape` without the batch."""
    v = m.plain(held)
    if v.layout.n != 0 or not v.layout.alone:
        raise Unsupported("the batch must be axis 0 here", "keep the batch first")
    return Held(m.reshaped(v, Layout((1, *shape), 0)))


@layer("Flatten")
def flatten(m: Walk, op: Any, a: Call) -> Held:
    """`flatten`; the rows of the next `linear` are reordered from H,W,C to C,H,W"""
    x = m.held(a.first)
    if op.data_format == "channels_first" and x.rank > 2:
        raise Unsupported(
            "moves channels last (channels_first)", "keras.layers.Reshape"
        )
    size = math.prod(x.shape[1:])
    if x.rank == 1:
        return reshaped(m, x, (1,))
    if x.form in (FIRST, ROW) and x.n == 0:
        c, *space = x.value.shape[1:]
        flat = m.reshaped(x.value, Layout((1, size), 0))
        if c == 1 or math.prod(space) == 1:
            return Held(flat)
        return Held(flat, FLAT, (c, *space))
    return reshaped(m, x, (size,))


@layer("Reshape")
def reshape(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`"""
    x = m.held(a.first)
    shape = [int(s) for s in op.target_shape]
    if -1 in shape:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = math.prod(x.shape[1:]) // rest
    if tuple(shape) == x.shape[1:]:
        return x
    return reshaped(m, x, shape)


@layer("Permute")
def permute(m: Walk, op: Any, a: Call) -> Held:
    """`transpose`"""
    return Held(m.permuted(m.rows_apart(a.first), [0, *op.dims]))


@layer("RepeatVector")
def repeat_vector(m: Walk, op: Any, a: Call) -> Held:
    """`expand`"""
    v = m.rows_apart(a.first, 2)
    wide = m.reshaped(v, Layout((1, 1, v.shape[1]), 0))
    return Held(m.expand(wide, Layout((1, int(op.n), v.shape[1]), 0)))


def padded(m: Walk, held: Held, pads: dict[int, tuple[int, int]], value: float) -> Held:
    """pads: what lies before and behind an axis of Keras."""
    v = m.batch_first(held.value)
    all_pads = [(0, 0)] * v.layout.rank
    for axis, pair in pads.items():
        all_pads[held.laid(axis)] = pair
    shape = tuple(s + sum(p) for s, p in zip(v.shape, all_pads))
    if not any(any(p) for p in all_pads):
        return held
    flat = [side for pair in all_pads[1:] for side in pair]
    return Held(m.made("pad", [v], Layout(shape, 0), pad=flat, value=value), held.form)


def sides(value: Any, count: int) -> list[tuple[int, int]]:
    """(before, behind) for each axis, as Keras normalises them."""
    if count == 1:
        return [tuple(int(v) for v in value)]  # type: ignore[list-item]
    return [(int(a), int(b)) for a, b in value]


def _along_space(m: Walk, op: Any, a: Call, count: int) -> tuple[Held, int]:
    """The input, and its first axis of space."""
    x = m.held(a.first)
    ahead = getattr(op, "data_format", "channels_last") == "channels_first"
    if not ahead and count == 2:
        return m.first(x), 1
    return Held(m.plain(x)), 2 if ahead else 1


@layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(m: Walk, op: Any, a: Call) -> Held:
    """`pad`; part of the convolution that follows"""
    count = int(type(op).__name__[-2]) if type(op).__name__[-2].isdigit() else 2
    x, start = _along_space(m, op, a, count)
    both = sides(op.padding, count)
    return padded(m, x, {start + i: pair for i, pair in enumerate(both)}, 0.0)


@layer("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(m: Walk, op: Any, a: Call) -> Held:
    """`slice`"""
    count = int(type(op).__name__[-2]) if type(op).__name__[-2].isdigit() else 2
    x, start = _along_space(m, op, a, count)
    v = x.value
    for i, (before, behind) in enumerate(sides(op.cropping, count)):
        axis = x.laid(start + i)
        v = m.sliced(v, axis, before, v.shape[axis] - behind)
    return Held(v, x.form)


@layer("CenterCrop")
def center_crop(m: Walk, op: Any, a: Call) -> Held:
    """`slice`"""
    x, start = _along_space(m, op, a, 2)
    v = x.value
    for i, size in enumerate((int(op.height), int(op.width))):
        axis = x.laid(start + i)
        if v.shape[axis] < size:
            raise Unsupported("crops pictures that are smaller than its size")
        begin = (v.shape[axis] - size) // 2
        v = m.sliced(v, axis, begin, begin + size)
    return Held(v, x.form)


def repeated(m: Walk, v: Value, axis: int, times: int) -> Value:
    """Each place of an axis several times in a row."""
    if times == 1:
        return v
    shape = v.shape
    wide = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    v = m.reshaped(v, Layout(wide, v.layout.n))
    grown = (*shape[: axis + 1], times, *shape[axis + 1 :])
    v = m.expand(v, Layout(grown, v.layout.n))
    return m.reshaped(
        v,
        v.layout.reshaped(
            (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]), v.layout.n
        ),
    )


def nearest(m: Walk, v: Value, factors: Sequence[int]) -> Value:
    """N,C and places, each of them repeated."""
    size = [s * f for s, f in zip(v.shape[2:], factors)]
    return resized(m, v, size, "nearest", "asymmetric")


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def up_sampling(m: Walk, op: Any, a: Call) -> Held:
    """`resize`; bicubic and the like: `matmul` with a frozen matrix"""
    count = int(type(op).__name__[10])
    if count == 1:
        v = m.rows_apart(a.first, 3)
        turned = m.permuted(v, [0, 2, 1])
        return Held(m.permuted(nearest(m, turned, pairs(op.size, 1)), [0, 2, 1]))
    x, form = spatial(m, a.first, op, count)
    factors = pairs(op.size, count)
    v = m.spread_out(x.value)
    interpolation = getattr(op, "interpolation", "nearest")
    if interpolation == "nearest":
        return Held(nearest(m, v, factors), form)
    from bakeoff_import.keras_ops import interpolated

    size = [s * f for s, f in zip(v.shape[2:], factors)]
    return Held(interpolated(m, v, size, interpolation, False), form)


# ---- merging


def _merged(m: Walk, op: str, values: Sequence[Any]) -> Held:
    total = m.held(values[0])
    for value in values[1:]:
        total = m.pointwise(op, total, value)
    return total


@layer("Add")
def add(m: Walk, op: Any, a: Call) -> Held:
    """`add`"""
    return _merged(m, "add", a.first)


@layer("Subtract")
def subtract(m: Walk, op: Any, a: Call) -> Held:
    """`sub`"""
    return _merged(m, "sub", a.first)


@layer("Multiply")
def multiply(m: Walk, op: Any, a: Call) -> Held:
    """`mul`"""
    return _merged(m, "mul", a.first)


@layer("Maximum")
def maximum(m: Walk, op: Any, a: Call) -> Held:
    """`maximum`"""
    return _merged(m, "maximum", a.first)


@layer("Minimum")
def minimum(m: Walk, op: Any, a: Call) -> Held:
    """`minimum`"""
    return _merged(m, "minimum", a.first)


@layer("Average")
def average(m: Walk, op: Any, a: Call) -> Held:
    """`add`, `mul`"""
    return m.pointwise("mul", _merged(m, "add", a.first), 1 / len(a.first))


def joined(m: Walk, values: Sequence[Any], axis: int) -> Held:
    """Values along an axis of Keras."""
    held = [m.held(v) for v in values]
    form = next((h.form for h in held if h.form in (FIRST, ROW)), PLAIN)
    held = [m.formed(h, form) for h in held]
    lead = next((h for h in held if h.n is not None), held[0])
    return Held(m.concat([h.value for h in held], lead.laid(axis)), form)


@layer("Concatenate")
def concatenate(m: Walk, op: Any, a: Call) -> Held:
    """`concat`"""
    return joined(m, a.first, int(op.axis))


# ---- attention


def attended(
    m: Walk,
    q: Value,
    k: Value,
    v: Value,
    scale: float,
    causal: bool,
    mask: Any,
    rate: float,
) -> Value:
    """q N,T,heads,D; k, v N,S,heads,D; mask N or 1,heads or 1,T,S: true takes part."""
    width = q.shape[-1]
    factor = scale * math.sqrt(width)
    whole = (
        mask is None
        and k.shape == v.shape
        and width == k.shape[-1]
        and (not causal or q.shape[1] == k.shape[1])
    )
    if whole:
        if abs(factor - 1) > 1e-12:
            q = m.binary("mul", q, factor)
        return m.made("attention", [q, k, v], q.layout, causal=causal, rate=rate)
    q = m.permuted(m.binary("mul", q, scale), [0, 2, 1, 3])
    scores = product(m, q, m.permuted(k, [0, 2, 3, 1]))
    if causal:
        rows, columns = scores.shape[-2:]
        side = np.tril(np.ones((rows, columns), dtype=bool))
        scores = _kept(m, scores, side)
    if mask is not None:
        scores = _kept(m, scores, mask)
    weights = m.unary("softmax", scores, axis=3)
    if rate > 0:
        weights = m.unary("dropout", weights, rate=rate)
    out = product(m, weights, m.permuted(v, [0, 2, 1, 3]))
    return m.permuted(out, [0, 2, 1, 3])


def _kept(m: Walk, scores: Value, mask: Any) -> Value:
    if not isinstance(mask, Held):
        mask = np.asarray(to_numpy(mask)) != 0
    elif mask.dtype != "bool":
        raise Unsupported("takes a mask of numbers", "a mask of dtype bool: mask > 0.5")
    return m.pointwise("where", mask, scores, -1e30).value


def _projected(m: Walk, x: Value, part: Any, heads: int) -> Value:
    """N,T,F to N,T,heads,D by an EinsumDense with the kernel F,heads,D."""
    inside, outside = (
        int(kernel_of(part).shape[0]),
        math.prod(kernel_of(part).shape[1:]),
    )
    steps = [("reshape", (inside, outside)), ("transpose", (1, 0))]
    slots = [("weight", m.slot(kernel_of(part), *steps))]
    if part.bias is not None:
        slots.append(("bias", m.slot(part.bias, ("reshape", (outside,)))))
    layout = x.layout.sized(2, outside)
    with m.graph.called(f"{m.graph.base}_{ir_word(part.name)}"):
        out = m.made("linear", [x], layout, params=slots)
        shape = (1, x.shape[1], heads, outside // heads)
        return m.reshaped(out, Layout(shape, 0))


@layer("MultiHeadAttention")
def multi_head_attention(m: Walk, op: Any, a: Call) -> Any:
    """`linear`, `attention`, `linear`; with a mask `matmul`, `softmax`"""
    if getattr(op, "_sliding_window", None) is not None:
        raise Unsupported("attends over a window (sliding_window)", "a mask")
    if getattr(op, "_use_gate", False):
        raise Unsupported("gates its output (use_gate)", "use_gate=False")
    if a.get("return_attention_scores"):
        raise Unsupported("returns its scores", "return_attention_scores=False")
    query = m.rows_apart(a.arguments["query"], 3)
    value = m.rows_apart(a.arguments["value"], 3)
    key = a.get("key")
    key = value if key is None else m.rows_apart(key, 3)
    heads = int(op._num_heads)
    q = _projected(m, query, op._query_dense, heads)
    k = _projected(m, key, op._key_dense, heads)
    v = _projected(m, value, op._value_dense, heads)
    mask = a.get("attention_mask")
    if isinstance(mask, Held):
        shape = m.plain(mask)
        if shape.layout.rank == 3:
            lay = shape.layout
            wide = Layout((lay.shape[0], 1, *lay.shape[1:]), lay.n)
            mask = Held(m.reshaped(shape, wide))
    elif mask is not None:
        mask = to_numpy(mask)
        mask = mask[:, None] if mask.ndim == 3 else mask
    rate = float(op._dropout) if m.drops(op._dropout, a.training) else 0.0
    causal = bool(a.get("use_causal_mask"))
    scale = float(op._inverse_sqrt_key_dim)
    out = attended(m, q, k, v, scale, causal, mask, rate)
    part = op._output_dense
    inside = math.prod(out.shape[2:])
    flat = m.reshaped(out, Layout((1, out.shape[1], inside), 0))
    outside = math.prod(kernel_of(part).shape[2:])
    steps = [("reshape", (inside, outside)), ("transpose", (1, 0))]
    slots = [("weight", m.slot(kernel_of(part), *steps))]
    if part.bias is not None:
        slots.append(("bias", m.slot(part.bias, ("reshape", (outside,)))))
    made = m.made("linear", [flat], flat.layout.sized(2, outside), params=slots)
    sizes = (1, out.shape[1], *(int(s) for s in kernel_of(part).shape[2:]))
    return Held(m.reshaped(made, Layout(sizes, 0)))


# ---- refused

_AUGMENTS = (
    "augments its input at random",
    "leave it out of the model: augmentation belongs to the data",
)
_NOISE = ("draws random numbers", "keras.layers.Dropout")
REFUSED.update(dict.fromkeys((
    "RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast "
    "RandomCrop RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur "
    "RandomGrayscale RandomHue RandomInvert RandomPerspective RandomPosterization "
    "RandomRotation RandomSaturation RandomSharpness RandomShear RandomTranslation "
    "RandomZoom AugMix AutoContrast CutMix Equalization MixUp RandAugment "
    "Solarization"
).split(), _AUGMENTS))  # fmt: skip
REFUSED.update(dict.fromkeys(
    ("GaussianNoise", "GaussianDropout", "AlphaDropout"), _NOISE
))  # fmt: skip
_DATA = ("prepares data", "do it before the model: the workload reads numbers")
REFUSED.update(dict.fromkeys((
    "TextVectorization StringLookup IntegerLookup Hashing HashedCrossing "
    "Discretization CategoryEncoding FeatureSpace MelSpectrogram STFTSpectrogram"
).split(), _DATA))  # fmt: skip
REFUSED["Masking"] = ("masks steps", "sequences of one length")
REFUSED["ConvLSTM1D"] = REFUSED["ConvLSTM2D"] = REFUSED["ConvLSTM3D"] = (
    "is recurrent over pictures",
    "LSTM, or Conv layers",
)
REFUSED["ActivityRegularization"] = (
    "adds to the loss",
    "leave it out; the recipe has weight decay",
)
REFUSED["SpectralNormalization"] = (
    "changes its weights in a step",
    "the layer without it",
)
