"""The table's rows for layers: products, convolutions, pools, norms, sequences.

Unlike the rows of element-wise ops these meet what the IR does not have: weights that
are computed, one axis in place of two, windows with holes, pictures merged with the
batch. Each is rewritten into what there is (a picture of height 1, windows times a
matrix, one group for each channel) rather than given an op of its own: an op costs a
function in seven emitters, a rewriting costs one here, and the proof shows that it is
right. The plain case always stays the plain op, as that is what is raced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np
import torch

from bakeoff_import.builder import LARGEST
from bakeoff_import.mapping import Args, Mapper, Row, coefficient
from bakeoff_import.problems import Unsupported
from bakeoff_import.rows import _axes, expand, over, repeat_interleave, root_of, row
from bakeoff_import.steps import (
    along,
    averaging,
    channels_scaled,
    global_pool,
    grouped_norm,
    pool_made,
    product,
    resized,
    resizing,
    selected,
    split_evenly,
    transposed_by_product,
)
from bakeoff_import.steps import einsum as einsum_of
from bakeoff_import.values import Const, Layout, N, Param, Shape, Stacked, Value

# ---- products


def _weights(m: Mapper, **slots: Any) -> list[tuple[str, str]]:
    given = {slot: arg for slot, arg in slots.items() if arg is not None}
    return [(k, v if isinstance(v, str) else m.slot(v)) for k, v in given.items()]


@row("linear")
def linear(m: Mapper, a: Args) -> Value:
    """`linear`; with a computed weight `transpose`, `matmul`, `add`"""
    x = m.value(a.input)
    if x.layout.n == x.layout.rank - 1:
        raise Unsupported("works along the batch axis", "keep the rows apart")
    if not isinstance(a.weight, (Param, Const)):
        weight = m.value(a.weight)
        out = product(m, x, m.permuted(weight, [1, 0]))
        return out if a.bias is None else _biased(m, out, a.bias)
    layout = x.layout.sized(x.layout.rank - 1, a.weight.tensor.shape[0])
    computed = isinstance(a.bias, Value)
    slots = _weights(m, weight=a.weight, bias=None if computed else a.bias)
    out = m.made("linear", [x], layout, params=slots)
    return _biased(m, out, a.bias) if computed else out


def _biased(m: Mapper, x: Value, bias: Any) -> Value:
    b = m.value(bias)
    shape = (1,) * (x.layout.rank - b.layout.rank) + b.shape
    b = m._fitted(m.reshaped(b, Layout(shape)), x.layout)
    return m.made("add", [x, b], x.layout)


@row("matmul", "bmm", "mm", "mv", "dot", "__matmul__")
def matmul(m: Mapper, a: Args) -> Value:
    """`matmul`; with a trained matrix transposed on the right it is still `matmul`"""
    left = a.input
    right = a.get("other", a.get("mat2", a.get("vec", a.get("tensor"))))
    turned = m.turned_matrix(right)
    if turned is not None:  # x @ w.T, where w is in another slot perhaps
        made: Value = linear(m, Args(input=left, weight=turned, bias=None))
        return made
    return product(m, m.value(left), m.value(right))


@row("addmm", "baddbmm")
def addmm(m: Mapper, a: Args) -> Value:
    """`matmul`, `add`"""
    first, second = a.get("mat1", a.get("batch1")), a.get("mat2", a.get("batch2"))
    out = product(m, m.value(first), m.value(second))
    if a.get("alpha", 1) != 1:
        out = m.binary("mul", out, a.alpha)
    beta = a.get("beta", 1)
    if beta == 0:
        return out
    added = a.input if beta == 1 else m.binary("mul", m.value(a.input), beta)
    return m.pointwise("add", out, added)


@row("einsum")
def einsum(m: Mapper, a: Args) -> Value:
    """`transpose`, `reshape`, `matmul`; `sum` of one operand"""
    return einsum_of(m, a.equation, [m.value(t) for t in a.tensors])


@row("bilinear")
def bilinear(m: Mapper, a: Args) -> Value:
    """`transpose`, `reshape`, `matmul`, as einsum "...i,oij,...j->...o" """
    values = [m.value(t) for t in (a.input1, a.weight, a.input2)]
    out = einsum_of(m, "...i,oij,...j->...o", values)
    return out if a.bias is None else _biased(m, out, a.bias)


@row("embedding")
def embedding(m: Mapper, a: Args) -> Value:
    """`embedding`; of constant ids `take`; padding_idx of a row that stays 0: `mul`"""
    padding = int(a.get("padding_idx", -1))
    ids = a.indices
    trained = isinstance(a.weight, Param) and a.weight.tensor.requires_grad
    masked = padding >= 0 and trained
    if masked and isinstance(ids, Const) and bool((ids.tensor == padding).any()):
        raise Unsupported(
            "looks up constant ids, the row of padding_idx among them",
            "leave padding_idx out",
        )
    if a.get("scale_grad_by_freq"):
        raise Unsupported("scales gradients by frequency", "scale_grad_by_freq=False")
    shape, n = m.out()
    if isinstance(ids, Const):
        table = m.value(a.weight)
        row_ = m.one_row(ids, 1).reshape(-1)
        alone = n is None or shape[n] == 1
        if alone and bool((row_ == row_[0]).all()):  # types of tokens: one row for all
            one = m.sliced(table, 0, int(row_[0]), int(row_[0]) + 1)
            wide = Layout((*(1 for _ in shape[1:]), shape[-1]))
            return expand(m, Args(input=m.reshaped(one, wide)))  # type: ignore[no-any-return]
        taken = m.taken(table, row_, 0)
        if n is None:
            return m.reshaped(taken, Layout(shape))
        whole = Layout(shape, n, 1, shape[n])
        name = m.graph.reshape(taken.name, taken.ir, whole.ir(True))
        return Value(name, whole, spread=True)
    x = m.ids(m.value(ids))
    lay = x.layout
    layout = Layout((*lay.shape, shape[-1]), lay.n, lay.before, lay.after)
    stays_zero = (
        masked
        and not bool(a.weight.tensor[padding].any())
        and not m.read_elsewhere(a.weight.key, padding)
    )
    more: dict[str, Any] = {"padding_idx": padding} if masked and not stays_zero else {}
    slots = _weights(m, weight=a.weight)
    out = m.made("embedding", [x], layout, params=slots, **more)
    if not stays_zero:
        return out
    trains = torch.ones(a.weight.tensor.shape[0], 1, dtype=torch.float64)
    trains[padding] = 0
    owner = a.weight.key.rpartition(".")[0]
    slot = m.graph.parameter(f"{owner}.trains".lstrip("."), trains, frozen=True)
    single = layout.sized(layout.rank - 1, 1)
    mask = m.made("embedding", [x], single, params=[("weight", slot)])
    m.padding[a.weight.key] = padding
    return m.made("mul", [out, mask], layout)


@row("embedding_bag")
def embedding_bag(m: Mapper, a: Args) -> list[Any]:
    """`embedding`, `sum`, `mean` or `max`; of ids in N,T"""
    ids, offsets = m.value(a.indices), a.offsets
    count = math.prod(ids.shape)
    even = isinstance(offsets, Const) and torch.equal(
        offsets.tensor, count * torch.arange(len(offsets.tensor))
    )
    padding = -1 if a.padding_idx is None else int(a.padding_idx)
    largest = a.mode == 2 and padding >= 0
    if ids.layout.n is None or not even or largest or a.include_last_offset:
        raise Unsupported(
            "has bags of several sizes, or takes the largest of some rows",
            "bags of one size: ids[N,T]",
        )
    ids = m.reshaped(ids, ids.layout.reshaped((1, count), 0))
    layout = Layout((1, count, a.weight.tensor.shape[1]), 0)
    rows = m.made("embedding", [ids], layout, params=_weights(m, weight=a.weight))
    if a.per_sample_weights is not None:
        weights = m.reshaped(m.value(a.per_sample_weights), layout.sized(2, 1))
        rows = over("mul", m, rows, weights)
    if padding < 0:
        how = ("sum", "mean", "max")[a.mode]
        return [m.reduced(how, rows, [1], False), None, None, None]
    counts = torch.ones(a.weight.tensor.shape[0], 1, dtype=torch.float64)
    counts[padding] = 0
    slots = [("weight", m.slot(Const(counts)))]
    mask = m.made("embedding", [ids], layout.sized(2, 1), params=slots)
    total = m.reduced("sum", over("mul", m, rows, mask), [1], False)
    if a.mode == 1:
        size = m.reduced("sum", mask, [1], False)
        total = over("div", m, total, m.binary("maximum", size, 1.0))
    return [total, None, None, None]


@row("one_hot")
def one_hot(m: Mapper, a: Args) -> Value:
    """`embedding` in a frozen unit matrix"""
    x = m.ids(m.value(a.input))
    if a.num_classes < 1:
        raise Unsupported("takes the number of classes from the data", "num_classes")
    lay = x.layout
    layout = Layout((*lay.shape, a.num_classes), lay.n, lay.before, lay.after)
    unit = m.slot(Const(torch.eye(a.num_classes, dtype=torch.float64)))
    return m.made("embedding", [x], layout, params=[("weight", unit)])


# ---- convolutions


def _pairs(value: Any, count: int) -> list[int]:
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(one) for one in (value * count if len(value) == 1 else value)]


@row("conv1d", "conv2d", "conv3d")
def conv(m: Mapper, a: Args) -> Value:
    """`conv1d`, `conv2d`, `conv3d`; padding="same" too"""
    name = m._op_name(m.node).removeprefix("aten.")
    count = int(name[4])
    x = m.spread_out(m.value(a.input))
    computed = not isinstance(a.weight, (Param, Const))
    kernel = a.weight.shape[2:] if computed else a.weight.tensor.shape[2:]
    dilation, stride = _pairs(a.dilation, count), _pairs(a.stride, count)
    if a.padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        pads = [side for t in total for side in (t // 2, t - t // 2)]
    elif a.padding == "valid":
        pads = [0] * (2 * count)
    else:
        pads = [p for p in _pairs(a.padding, count) for _ in (0, 1)]
    attrs: dict[str, Any] = {
        "stride": stride,
        "pad": pads,
        "dilation": dilation,
        "groups": int(a.groups),
    }
    shape = m.out()[0]
    if computed:
        return _conv_by_product(m, m.batch_first(x), shape, a, attrs)
    merged = x.layout.n == 0 and not x.layout.alone
    if count == 1 and merged and isinstance(a.weight, Param):
        return _of_stack(m, "conv", a, x, {"pad": [0, 0, *pads]})
    if count == 1 and x.layout.n is not None and not m.known(name):
        return _conv_of_row(m, m.batch_first(x, 3), shape, a, attrs)
    attrs["params"] = _weights(m, weight=a.weight, bias=a.bias)
    if count == 2 and merged:
        return _conv_of_stack(m, x, shape, kernel, attrs)
    if x.layout.n is None:  # N in the IR: torch's axis 0, of size 1 perhaps
        source = m.graph.reshape(x.name, x.ir, x.shape)
        params = attrs.pop("params")
        out = m.graph.node(name, [source], shape, "f32", params, attrs)
        layout = Layout(shape)
        return Value(m.graph.reshape(out, shape, layout.ir()), layout)
    x = m.batch_first(x, count + 2)
    return m.made(name, [x], Layout(shape, 0), **attrs)


def _conv_by_product(
    m: Mapper, x: Value, shape: Shape, a: Args, attrs: dict[str, Any]
) -> Value:
    """A convolution whose weight is computed: windows, times a matrix."""
    weight = m.value(a.weight)
    if weight.layout.n is not None or x.layout.rank != weight.layout.rank:
        raise Unsupported("its weight depends on the input", "a matrix product")
    if weight.layout.rank == 3:  # along one axis: pictures of height 1
        weight, x = (
            m.reshaped(v, Layout((*v.shape[:2], 1, v.shape[2]), v.layout.n))
            for v in (weight, x)
        )
        high = {"stride": [1], "dilation": [1], "pad": [0, 0]}
        attrs = {**attrs, **{key: [*more, *attrs[key]] for key, more in high.items()}}
        wide = _conv_by_product_of(m, x, weight, (*shape[:2], 1, shape[2]), a, attrs)
        return m.reshaped(wide, Layout(shape, 0))
    return _conv_by_product_of(m, x, weight, shape, a, attrs)


def _conv_by_product_of(
    m: Mapper, x: Value, weight: Value, shape: Shape, a: Args, attrs: dict[str, Any]
) -> Value:
    outside, inside, *kernel = weight.shape
    groups = int(a.groups)
    windows = _windows(m, x, kernel, shape[2:], attrs)
    places = math.prod(shape[2:])
    rows_ = inside * math.prod(kernel)
    right = m.reshaped(windows, Layout((1, groups, rows_, places), 0))
    left = m.reshaped(weight, Layout((groups, outside // groups, rows_)))
    made = (N, groups, outside // groups, places)
    name = m.graph.node("matmul", [left.name, right.name], made)
    out = Value(name, Layout((1, *made[1:]), 0))
    return channels_scaled(m, m.reshaped(out, Layout(shape, 0)), None, a.bias)


def _windows(
    m: Mapper,
    x: Value,
    kernel: Sequence[int],
    sizes: Sequence[int],
    attrs: Any,
    beyond: float = 0.0,
) -> Value:
    """Each place of a window as a channel of its own: a slice, with the strides.
    beyond: what the padding holds."""
    pads = attrs["pad"]
    if any(pads):
        grown = [
            size + pads[2 * i] + pads[2 * i + 1] for i, size in enumerate(x.shape[2:])
        ]
        wide = Layout((*x.shape[:2], *grown), 0)
        x = m.made("pad", [x], wide, pad=[0, 0, *pads], value=beyond)
    parts = []
    for place in np.ndindex(*kernel):
        part = x
        for axis, (k, size) in enumerate(zip(place, sizes)):
            begin, step = k * attrs["dilation"][axis], attrs["stride"][axis]
            end = begin + (size - 1) * step + 1
            part = m.sliced(part, axis + 2, begin, end, step)
        parts.append(part)
    channels = x.shape[1] * len(parts)
    return m.reshaped(m.stack(parts, 2), Layout((1, channels, *sizes), 0))


def _conv_of_row(
    m: Mapper, x: Value, shape: Shape, a: Args, attrs: dict[str, Any]
) -> Value:
    """A convolution along one axis as one of pictures of height 1."""
    weight = m.slot(a.weight, (*a.weight.tensor.shape[:2], 1, a.weight.tensor.shape[2]))
    attrs["params"] = [("weight", weight), *_weights(m, bias=a.bias)]
    attrs["stride"], attrs["dilation"] = [1, *attrs["stride"]], [1, *attrs["dilation"]]
    attrs["pad"] = [0, 0, *attrs["pad"]]
    wide = m.reshaped(x, Layout((*x.shape[:2], 1, x.shape[2]), 0))
    made = m.made("conv2d", [wide], Layout((*shape[:2], 1, shape[2]), 0), **attrs)
    return m.reshaped(made, Layout(shape, 0))


def _conv_of_stack(
    m: Mapper, x: Value, shape: Shape, kernel: Sequence[int], attrs: dict[str, Any]
) -> Value:
    """A convolution of pictures that are merged with N: below each other in one
    picture, with padding between them; rows of the result that see two are cut."""
    layout = Layout(shape, 0, x.layout.before, x.layout.after)
    _, channels, height, width = x.shape
    count = x.shape[0]
    top, bottom, left, right = attrs["pad"]
    step = attrs["stride"][0]
    apart = m.reshaped(m.apart(x), Layout((1, count, channels, height, width), 0))
    apart = m.permuted(apart, [0, 2, 1, 3, 4])
    tall = -(-(top + height + bottom) // step) * step
    pads = [0, 0, 0, 0, top, tall - height - top, left, right]
    wide = Layout((1, channels, count, tall, left + width + right), 0)
    if any(pads):
        apart = m.made("pad", [apart], wide, pad=pads, value=0.0)
    one = m.reshaped(apart, Layout((1, channels, count * tall, wide.shape[4]), 0))
    span = attrs["dilation"][0] * (kernel[0] - 1) + 1
    rows = count * tall // step
    attrs["pad"] = [0, max(0, span - step), 0, 0]
    made = m.made("conv2d", [one], Layout((1, shape[1], rows, shape[3]), 0), **attrs)
    made = m.reshaped(made, Layout((1, shape[1], count, tall // step, shape[3]), 0))
    made = m.permuted(m.sliced(made, 3, 0, shape[2]), [0, 2, 1, 3, 4])
    return m.reshaped(made, layout)


@row("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(m: Mapper, a: Args) -> Value:
    """`conv_transpose1d`, `conv_transpose2d`, `conv_transpose3d`"""
    name = m._op_name(m.node).removeprefix("aten.")
    count = int(name[14])
    x = m.spread_out(m.value(a.input))
    merged = x.layout.n == 0 and not x.layout.alone
    if merged and count < 3 and isinstance(a.weight, Param):
        pad = [0, 0, *(p for p in _pairs(a.padding, count) for _ in (0, 1))]
        more = {"pad": pad, "output_pad": [0, *_pairs(a.output_padding, count)]}
        return _of_stack(m, "conv_transpose", a, x, more)
    x = m.batch_first(x, count + 2)
    layout = Layout(m.out()[0], 0)
    dilation = _pairs(a.dilation, count)
    computed = not isinstance(a.weight, (Param, Const))
    groups = int(a.groups)
    if computed and groups > 1:
        weight = m.value(a.weight)
        inside, outside = x.shape[1] // groups, layout.shape[1] // groups
        outs = [
            conv_transpose(m, Args(
                a, input=m.sliced(x, 1, i * inside, (i + 1) * inside), groups=1,
                weight=m.sliced(weight, 0, i * inside, (i + 1) * inside), bias=None,
                channels=outside,
            ))
            for i in range(groups)
        ]  # fmt: skip
        return channels_scaled(m, m.concat(outs, 1), None, a.bias)
    layout = layout.sized(1, a.get("channels", layout.shape[1]))
    simple = count < 3 and groups == 1 and set(dilation) == {1}
    if simple and (computed or not m.known(name)):
        return _transposed_by_product(m, x, m.value(a.weight), layout, a)
    return m.made(
        name,
        [x],
        layout,
        params=_weights(m, weight=a.weight, bias=a.bias),
        stride=_pairs(a.stride, count),
        pad=[p for p in _pairs(a.padding, count) for _ in (0, 1)],
        dilation=dilation,
        groups=int(a.groups),
        output_pad=_pairs(a.output_padding, count),
    )


def _of_stack(
    m: Mapper, name: str, a: Args, x: Value, more: Mapping[str, Any]
) -> Value:
    """Of pictures that are merged with N: places along one more axis, in front, where
    the kernel has one place."""
    count, out = x.layout.rank - 2, m.out()[0]
    weight = a.weight.tensor.shape
    held = m.reshaped(m.apart(x), Layout((1, *x.shape), 0))
    order = [0, 2, 1, *range(3, count + 3)]
    slot = m.slot(a.weight, (*weight[:2], 1, *weight[2:]))
    made = m.made(
        f"{name}{count + 1}d",
        [m.permuted(held, order)],
        Layout((1, out[1], x.shape[0], *out[2:]), 0),
        params=[("weight", slot), *_weights(m, bias=a.bias)],
        stride=[1, *_pairs(a.stride, count)],
        dilation=[1, *_pairs(a.dilation, count)],
        groups=int(a.groups),
        **more,
    )
    merged = Layout((x.shape[0], *out[1:]), 0, x.layout.before, x.layout.after)
    return m.reshaped(m.permuted(made, order), merged)


def _transposed_by_product(
    m: Mapper, x: Value, weight: Value, layout: Layout, a: Args
) -> Value:
    """Of one axis or two; of one as pictures of height 1."""
    high = [1] * (4 - x.layout.rank)
    stride = [*high, *_pairs(a.stride, x.layout.rank - 2)]
    pad = [*(0 for _ in high), *_pairs(a.padding, x.layout.rank - 2)]
    flat = layout
    if high:
        x, weight = (
            m.reshaped(v, Layout((*v.shape[:2], 1, v.shape[2]), v.layout.n))
            for v in (x, weight)
        )
        flat = Layout((*layout.shape[:2], 1, layout.shape[2]), 0)
    made = transposed_by_product(m, x, weight, stride, pad, flat)
    return channels_scaled(m, m.reshaped(made, layout), None, a.bias)


# ---- pools


def _pool(m: Mapper, a: Args, count: int) -> tuple[Value, dict[str, Any], list[int]]:
    """Input, attributes, and how far windows reach beyond the padding (ceil_mode)."""
    x = _channels_of_stack(m, a.input, count)
    kernel = _pairs(a.kernel_size, count)
    stride = _pairs(a.stride or kernel, count)
    pad = _pairs(a.padding, count)
    out = m.out()[0][2:]
    sides, extra = [], []
    for size, k, s, p, o in zip(x.shape[2:], kernel, stride, pad, out):
        need = (o - 1) * s + k - size - p  # after the axis, so that o windows fit
        sides += [p, max(p, need)]
        extra.append(max(0, need - p))
    return x, {"kernel": kernel, "stride": stride, "pad": sides}, extra


def _channels_of_stack(m: Mapper, arg: Any, count: int) -> Value:
    """The input of an op that takes each channel alone: pictures that are merged with
    N become channels."""
    x = m.spread_out(m.value(arg))
    if x.layout.n == 0 and not x.layout.alone:
        channels = x.shape[0] * x.shape[1]
        x = m.reshaped(m.apart(x), Layout((1, channels, *x.shape[2:]), 0))
    return m.batch_first(x, count + 2)


def _stacked_again(m: Mapper, out: Value, origin: Any) -> Value:
    """Undoes _channels_of_stack."""
    lay = m.value(origin).layout
    if lay.alone:
        return out
    shape = (lay.shape[0], lay.shape[1], *out.shape[2:])
    return m.reshaped(out, Layout(shape, 0, lay.before, lay.after))


def _pooled(m: Mapper, x: Value, sizes: Sequence[int]) -> Layout:
    return Layout((*x.shape[:2], *sizes), 0)


def _reaches_far(attrs: dict[str, Any]) -> bool:
    return any(2 * p > attrs["kernel"][i // 2] for i, p in enumerate(attrs["pad"]))


@row("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(m: Mapper, a: Args) -> Value:
    """`max_pool1d`, `max_pool2d`, `max_pool3d`; with holes: `slice`, `concat`, pool"""
    name = m._op_name(m.node).removeprefix("aten.")
    count = int(name[8])
    x, attrs, _ = _pool(m, a, count)
    if _reaches_far(attrs) or any(d != 1 for d in _pairs(a.dilation, count)):
        return _stacked_again(m, _maxima(m, a, x, count), a.input)
    out = pool_made(m, name, x, _pooled(m, x, m.out()[0][2:]), attrs)
    return _stacked_again(m, out, a.input)


def _maxima(m: Mapper, a: Args, x: Value, count: int) -> Value:
    """Windows that the IR's pools lack, one below the other: a pool over them gives the
    gradient of equal ones to the first, as torch does."""
    kernel, pad = _pairs(a.kernel_size, count), _pairs(a.padding, count)
    stride, dilation = _pairs(a.stride or kernel, count), _pairs(a.dilation, count)
    sizes = m.out()[0][2:]
    pads = []
    for size, k, s, p, d, o in zip(x.shape[2:], kernel, stride, pad, dilation, sizes):
        pads += [p, max(p, (o - 1) * s + d * (k - 1) + 1 - size - p)]
    attrs = {"stride": stride, "pad": pads, "dilation": dilation}
    windows = _windows(m, x, kernel, sizes, attrs, -LARGEST)
    channels, places = x.shape[1], math.prod(sizes)
    flat = m.reshaped(windows, Layout((1, channels, math.prod(kernel), places), 0))
    over = [math.prod(kernel), 1]
    made = m.made("max_pool2d", [flat], Layout((1, channels, 1, places), 0),
                  kernel=over, stride=over, pad=[0, 0, 0, 0])  # fmt: skip
    return m.reshaped(made, Layout((1, channels, *sizes), 0))


@row("max_pool2d_with_indices")
def max_pool_and_places(m: Mapper, a: Args) -> list[Any]:
    """`max_pool2d`; its indices, of windows that do not overlap: `argmax`"""
    x, attrs, _ = _pool(m, a, 2)
    read = [user for user in m.node.users if user.args[1] == 1 and user.users]
    if _reaches_far(attrs) or any(d != 1 for d in _pairs(a.dilation, 2)):
        made = _maxima(m, a, x, 2)
    else:
        made = m.made("max_pool2d", [x], _pooled(m, x, m.out()[0][2:]), **attrs)
    places = _pooled_places(m, a, x, made.shape[2:]) if read else None
    return [_stacked_again(m, made, a.input), places]


def _pooled_places(m: Mapper, a: Args, x: Value, sizes: Sequence[int]) -> Value:
    """Of each window's maximum in its picture, row after row."""
    kernel, pad = _pairs(a.kernel_size, 2), _pairs(a.padding, 2)
    stride = _pairs(a.stride or kernel, 2)
    if any(k > s for k, s in zip(kernel, stride)) or _pairs(a.dilation, 2) != [1, 1]:
        raise Unsupported("gives places of windows that overlap", "stride=kernel_size")
    height, width = x.shape[2:]
    pads = [0] * 2
    for size, s, p, o in zip((height, width), stride, pad, sizes):
        pads += [p, max(0, o * s - size - p)]
    wide = (height + sum(pads[2:4]), width + sum(pads[4:]))
    if any(pads):
        layout = Layout((*x.shape[:2], *wide), 0)
        x = m.made("pad", [x], layout, pad=pads, value=-LARGEST)
    for i in (0, 1):
        x = m.sliced(x, 2 + i, 0, sizes[i] * stride[i])
    split = (sizes[0], stride[0], sizes[1], stride[1])
    x = m.permuted(m.reshaped(x, Layout((*x.shape[:2], *split), 0)), [0, 1, 2, 4, 3, 5])
    x = m.sliced(m.sliced(x, 4, 0, kernel[0]), 5, 0, kernel[1])
    out = Layout(x.shape[:4], 0)
    x = m.reshaped(x, Layout((*x.shape[:4], math.prod(kernel)), 0))
    found = m.made("argmax", [x], out, "i32", axis=4)
    i, j = torch.meshgrid(*map(torch.arange, kernel), indexing="ij")
    inside = (i * width + j).reshape(-1, 1).double()
    lookup = m.made("embedding", [found], Layout((*out.shape, 1), 0),
                    params=[("weight", m.slot(Const(inside)))])  # fmt: skip
    i, j = torch.meshgrid(*map(torch.arange, sizes), indexing="ij")
    first = (i * stride[0] - pad[0]) * width + j * stride[1] - pad[1]
    base = m._fitted(Const(first.double().reshape(1, 1, *sizes)), out)
    places = m.made("add", [m.reshaped(lookup, out), base], out)
    m.whole.add(places.name)
    return places


@row("max_unpool2d")
def max_unpool(m: Mapper, a: Args) -> Value:
    """`scatter_add` to the places of a `max_pool2d` whose windows do not overlap"""
    x, ids = m.batch_first(a.input), m.value(a.indices)
    if ids.name not in m.whole or ids.shape != x.shape:
        raise Unsupported("has other places than those of nn.MaxPool2d")
    flat = Layout((*x.shape[:2], math.prod(x.shape[2:])), 0)
    size = math.prod(a.output_size)
    pair = m.reshaped(m.real(x), flat), m.reshaped(ids, flat)
    made = m.placed("scatter_add", *pair, 2, size=size)
    return m.reshaped(made, Layout((*x.shape[:2], *a.output_size), 0))


@row("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(m: Mapper, a: Args) -> Value:
    """`avg_pool1d`, `avg_pool2d`, `avg_pool3d`; others `matmul` with constants"""
    name = m._op_name(m.node).removeprefix("aten.")
    count = int(name[8])
    x, attrs, extra = _pool(m, a, count)
    include = bool(a.count_include_pad) and any(_pairs(a.padding, count))
    whole = a.get("divisor_override")
    if whole or (include and any(extra)) or _reaches_far(attrs):
        return _stacked_again(m, _averages(m, a, x, attrs, include), a.input)
    attrs["count_include_pad"] = include  # what ceil_mode adds never counts
    out = pool_made(m, name, x, _pooled(m, x, m.out()[0][2:]), attrs)
    return _stacked_again(m, out, a.input)


def _averages(m: Mapper, a: Args, x: Value, attrs: Any, include: bool) -> Value:
    """An average pool that the IR lacks: by a constant matrix along each axis.

    Of a window that begins at b, places beyond the padding never count, and padding
    counts where `include`; divisor_override replaces the product of all counts."""
    whole = a.get("divisor_override")
    for i, (size, out) in enumerate(zip(x.shape[2:], m.out()[0][2:])):
        kernel, pad = attrs["kernel"][i], attrs["pad"][2 * i]
        matrix = np.zeros((out, size))
        for place in range(out):
            begin = place * attrs["stride"][i] - pad
            end = min(begin + kernel, size + pad)
            low, high = max(begin, 0), min(end, size)
            matrix[place, low:high] = 1 / (end - begin if include else high - low)
            if whole:
                matrix[place, low:high] = 1
        x = along(m, x, 2 + i, matrix)
    return m.binary("mul", x, 1 / whole) if whole else x


def _adaptive(
    m: Mapper, a: Args, count: int
) -> tuple[Value, list[int], Optional[dict[str, Any]]]:
    """Input, output sizes, and the windows of an ordinary pool where sizes divide."""
    x = _channels_of_stack(m, a.input, count)
    out = list(m.out()[0][2:])
    sizes = x.shape[2:]
    if any(size % o for size, o in zip(sizes, out)):
        return x, out, None
    kernel = [size // o for size, o in zip(sizes, out)]
    return x, out, {"kernel": kernel, "stride": kernel, "pad": [0] * (2 * count)}


@row("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_avg_pool(m: Mapper, a: Args) -> Value:
    """`global_avg_pool2d`; where sizes divide `avg_pool2d`; `adaptive_avg_pool2d`"""
    name = m._op_name(m.node).removeprefix("aten.")
    count = int(name[17])
    x, out, windows = _adaptive(m, a, count)
    return _stacked_again(m, _averaged(m, name, x, out, windows), a.input)


def _averaged(
    m: Mapper, name: str, x: Value, out: list[int], windows: Optional[dict[str, Any]]
) -> Value:
    layout = _pooled(m, x, out)
    if list(x.shape[2:]) == out:
        return x
    if all(o == 1 for o in out):
        if len(out) == 2:
            return global_pool(m, x, True)
        return m.reduced("mean", x, list(range(2, 2 + len(out))), True)
    if windows:
        pool = name.removeprefix("adaptive_")
        return pool_made(m, pool, x, layout, {**windows, "count_include_pad": False})
    if len(out) == 2 and m.known("adaptive_avg_pool2d"):
        return m.made("adaptive_avg_pool2d", [x], layout, size=out)
    for axis, size in enumerate(out, 2):
        if x.shape[axis] != size:
            x = along(m, x, axis, averaging(x.shape[axis], size))
    return x


@row("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(m: Mapper, a: Args) -> Any:
    """`max_pool2d` where sizes divide; else `max` of each window, `concat`"""
    name = m._op_name(m.node).removeprefix("aten.")
    count = int(name[17])
    out = list(m.node.meta["val"][0].shape[2:])
    x = _channels_of_stack(m, a.input, count)
    if any(user.args[1] == 1 and user.users for user in m.node.users):
        raise Unsupported("needs the positions of the maxima", "return_indices=False")
    if any(size % o for size, o in zip(x.shape[2:], out)):
        for axis, size in enumerate(out, 2):
            x = _window_maxima(m, x, axis, size)
        return [_stacked_again(m, x, a.input), None]
    kernel = [size // int(o) for size, o in zip(x.shape[2:], out)]
    pool = name.removeprefix("adaptive_")
    layout = Layout((*x.shape[:2], *(int(o) for o in out)), 0)
    made = m.made(
        pool, [x], layout, kernel=kernel, stride=kernel, pad=[0] * (2 * count)
    )
    return [_stacked_again(m, made, a.input), None]


def _window_maxima(m: Mapper, x: Value, axis: int, out: int) -> Value:
    """Of the windows of an adaptive pool, which may overlap."""
    size = x.shape[axis]
    if size == out:
        return x
    windows = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
    parts = [m.sliced(x, axis, begin, end) for begin, end in windows]
    return m.concat([m.reduced("max", part, [axis], True) for part in parts], axis)


def _resized(m: Mapper, a: Args, mode: str, coordinates: str) -> Value:
    shape = m.out()[0]
    x = m.value(a.input)
    if shape == x.shape:
        return x
    matrices = [
        (_resizing(m, axis, old, new), resizing(old, new, mode, coordinates))
        for axis, (old, new) in enumerate(zip(x.shape, shape))
        if axis > 1 and old != new
    ]
    # torch computes places of mode nearest in float32, and may read the one before.
    exact = all(np.allclose(own, ours, 0, 1e-12) for own, ours in matrices)
    first = x.layout.n == 0 and x.layout.alone
    if not exact or not first or not m.known("resize"):
        return resized_by_matrices(m, a)  # type: ignore[no-any-return]
    return resized(m, m.batch_first(x), shape[2:], mode, coordinates)


@row("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def upsample_nearest(m: Mapper, a: Args) -> Value:
    """`resize` mode=nearest coordinates=asymmetric"""
    return _resized(m, a, "nearest", "asymmetric")


@row(
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
)
def upsample_nearest_exact(m: Mapper, a: Args) -> Value:
    """`resize` mode=nearest coordinates=half_pixel"""
    return _resized(m, a, "nearest", "half_pixel")


@row("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def upsample_linear(m: Mapper, a: Args) -> Value:
    """`resize` mode=linear coordinates=half_pixel or align_corners"""
    coordinates = "align_corners" if a.align_corners else "half_pixel"
    return _resized(m, a, "linear", coordinates)


@row("upsample_bicubic2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa")
def resized_by_matrices(m: Mapper, a: Args) -> Value:
    """`matmul` with a constant matrix for each axis"""
    x = m.value(a.input)
    if x.layout.n in (x.layout.rank - 1, x.layout.rank - 2):
        raise Unsupported("resizes the batch")
    shape = m.out()[0]
    if shape == x.shape:
        return x
    for axis in range(2, x.layout.rank):
        if x.shape[axis] != shape[axis]:
            matrix = _resizing(m, axis, x.shape[axis], shape[axis])
            x = along(m, x, axis, matrix.numpy())
    return x


def _resizing(m: Mapper, axis: int, size: int, out: int) -> Any:
    """The matrix that resizes one axis as the present node does, by the op itself."""
    node = m.node
    sizes = [int(s) for s in node.args[0].meta["val"].shape[2:]]
    target = [int(s) for s in node.meta["val"].shape[2:]]
    for other in range(len(sizes)):
        if other != axis - 2:  # two: antialiasing of one place beside it is wrong
            sizes[other] = target[other] = 2
    unit = torch.eye(size, dtype=torch.float64)
    picture = unit.reshape(
        size, 1, *(size if i == axis - 2 else 1 for i in range(len(sizes)))
    ).expand(size, 1, *sizes)
    factors = m._bind(node).get("scale_factors")
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, [picture, target, *node.args[2:]]))
    if factors:  # places depend on them, whole sizes or not
        given[names[1]] = None
        given["scale_factors"] = [
            factor if i == axis - 2 else 1.0 for i, factor in enumerate(factors)
        ]
    made = node.target(*given.values())
    for other in reversed(range(len(sizes))):
        if other != axis - 2:
            made = made.select(2 + other, 0)
    return made.reshape(size, out).T.contiguous()


# ---- windows


@row("grid_sampler")
def grid_sampler(m: Mapper, a: Args) -> Value:
    """sums over rows and columns, with the weights of both neighbours; bilinear"""
    if a.interpolation_mode != 0 or a.padding_mode == 2 or len(m.out()[0]) != 4:
        raise Unsupported(
            "samples other than bilinearly, or reflects", 'mode="bilinear"'
        )
    x, grid = m.batch_first(a.input, 4), m.batch_first(a.grid, 4)
    channels, (rows, columns) = x.shape[1], grid.shape[1:3]
    flat = m.reshaped(grid, Layout((1, rows * columns, 2), 0))

    def weights(which: int, size: int) -> Value:
        """N,size,places."""
        at = m.binary("add", m.sliced(flat, 2, which, which + 1), 1.0)
        scale = size - 1 if a.align_corners else size
        at = m.binary("mul", at, scale / 2)
        at = at if a.align_corners else m.binary("sub", at, 0.5)
        if a.padding_mode == 1:
            at = m.unary("clip", at, least=0.0, most=float(size - 1))
        low = m.stopped(m.unary("floor", at))
        share = m.made("sub", [at, low], at.layout)
        places = m.value(Const(torch.arange(size, dtype=torch.float64)[None, None]))
        wide = at.layout.sized(2, size)
        parts = []
        for place, part in (
            (low, m.binary("add", m.unary("neg", share), 1.0)),
            (m.binary("add", low, 1.0), share),
        ):
            pair = [place, m._fitted(places, wide)]
            here = m.made("equal", pair, wide, "bool")
            parts.append(m.made("where", [here, part, m.number(0.0)], wide))
        return m.permuted(m.made("add", parts, wide), [0, 2, 1])

    height, width = x.shape[2:]
    lines = m.reshaped(x, Layout((1, channels * height, width), 0))
    made = product(m, lines, weights(0, width))
    made = m.reshaped(made, Layout((1, channels, height, rows * columns), 0))
    beside = m.reshaped(weights(1, height), Layout((1, 1, height, rows * columns), 0))
    out = m.reduced("sum", m.made("mul", [made, beside], made.layout), [2], False)
    return m.reshaped(out, Layout((1, channels, rows, columns), 0))


@row("col2im")
def col2im(m: Mapper, a: Args) -> Value:
    """`conv_transpose2d` with a constant kernel that puts each place of a window"""
    x = m.batch_first(a.input, 3)
    kernel, size = _pairs(a.kernel_size, 2), _pairs(a.output_size, 2)
    pad, stride, dilation = (_pairs(v, 2) for v in (a.padding, a.stride, a.dilation))
    places = math.prod(kernel)
    channels = x.shape[1] // places
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    counts = [
        (s + 2 * p - span) // step + 1
        for s, p, span, step in zip(size, pad, spans, stride)
    ]
    more = [
        s - ((count - 1) * step - 2 * p + span)
        for s, count, step, p, span in zip(size, counts, stride, pad, spans)
    ]
    puts = torch.eye(places, dtype=torch.float64).reshape(places, 1, *kernel)
    weight = m.slot(Const(puts.repeat(channels, 1, 1, 1)))
    wide = m.reshaped(x, Layout((1, channels * places, *counts), 0))
    return m.made(
        "conv_transpose2d",
        [wide],
        Layout((1, channels, *size), 0),
        params=[("weight", weight)],
        stride=stride,
        pad=[p for p in pad for _ in (0, 1)],
        dilation=dilation,
        groups=channels,
        output_pad=more,
    )


@row("im2col")
def im2col(m: Mapper, a: Args) -> Value:
    """`slice` for each place of a window, `concat`"""
    x = m.batch_first(a.input, 4)
    kernel = _pairs(a.kernel_size, 2)
    pad, stride, dilation = (_pairs(v, 2) for v in (a.padding, a.stride, a.dilation))
    sizes = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(x.shape[2:], pad, dilation, kernel, stride)
    ]
    pads = [p for p in pad for _ in (0, 1)]
    attrs = {"stride": stride, "pad": pads, "dilation": dilation}
    made = _windows(m, x, kernel, sizes, attrs)
    return m.reshaped(made, Layout((1, made.shape[1], math.prod(sizes)), 0))


@row("unfold")
def unfold(m: Mapper, a: Args) -> Value:
    """`take` by constant places, `reshape`, `transpose`"""
    x = m.value(a.input)
    axis, size = x.layout.axis(a.dimension), int(a.size)
    if axis == x.layout.n:
        raise Unsupported("takes windows of the batch")
    count = (x.shape[axis] - size) // int(a.step) + 1
    places = (torch.arange(count)[:, None] * int(a.step) + torch.arange(size)).reshape(
        -1
    )
    taken = m.taken(x, places, axis)
    lay = x.layout
    shape = (*lay.shape[:axis], count, size, *lay.shape[axis + 1 :])
    n = lay.n if lay.n is None or lay.n < axis else lay.n + 1
    wide = m.reshaped(taken, Layout(shape, n, lay.before, lay.after))
    order = [i for i in range(len(shape)) if i != axis + 1]
    return m.permuted(wide, [*order, axis + 1])


@row("as_strided")
def as_strided(m: Mapper, a: Args) -> Value:
    """`take` by constant places of each row's numbers, `reshape`"""
    x = m.value(a.input)
    lay = x.layout
    count = math.prod(lay.shape[1:])
    given = m.node.args[0].meta["val"]
    fits = lay.n == 0 and given.is_contiguous() and not a.get("storage_offset")
    (rows, batch), *sizes = (coefficient(size) for size in a.size)
    if not (fits and batch and rows == lay.shape[0] and a.stride[0] == count):
        raise Unsupported("reads memory that is not the rows of a tensor in order")
    places = torch.zeros((), dtype=torch.int64)
    for (size, _), stride in zip(sizes, a.stride[1:]):
        places = places[..., None] + torch.arange(size) * stride
    numbers = m.reshaped(x, Layout((rows, count), 0, lay.before, lay.after))
    taken = m.taken(numbers, places.reshape(-1), 1)
    return m.reshaped(taken, Layout((rows, *places.shape), 0, lay.before, lay.after))


# ---- norms


def _affine(m: Mapper, a: Args, shape: Sequence[int]) -> list[tuple[str, str]]:
    """Slots of scale and shift; frozen ones and zeros where the origin has none."""
    weight = (
        m.slot(a.weight)
        if a.weight is not None
        else m.filled(m.graph.below("ones"), tuple(shape), 1.0)
    )
    bias = (
        m.slot(a.bias)
        if a.bias is not None
        else m.filled(m.graph.below("zeros"), tuple(shape), 0.0)
    )
    return [("weight", weight), ("bias", bias)]


@row("_native_batch_norm_legit_no_training")
def batch_norm_that_infers(m: Mapper, a: Args) -> Any:
    """as batch_norm in inference mode"""
    return batch_norm(m, Args(a, training=False))


@row("batch_norm", "_native_batch_norm_legit_functional", "native_batch_norm")
def batch_norm(m: Mapper, a: Args) -> Any:
    """`batch_norm`; with frozen statistics `sub`, `mul`, `add`"""
    functional = m._op_name(m.node) != "aten.batch_norm"
    x = m.value(a.input)
    if x.layout.n is None and a.training:
        out = _standardised(m, a, x)
        return [out, None, None, None, None] if functional else out
    statistics = bool(a.training)  # those of the batch
    if m.known_modes is None:
        m.norm_modes.append(statistics)
    else:
        trained = (
            m.known_modes[len(m.norm_modes)]
            if len(m.norm_modes) < len(m.known_modes)
            else False
        )
        m.norm_modes.append(trained)
        if trained and statistics:
            raise Unsupported(
                "takes the batch's statistics in inference too",
                "track_running_stats=True",
            )
        statistics = trained
    mean, var = a.running_mean, a.running_var
    if mean is None or var is None:
        raise Unsupported(
            "takes the batch's statistics in inference too: rows of a batch meet",
            "track_running_stats=True, or nn.GroupNorm",
        )
    if not statistics:
        out = _frozen_norm(m, a, x, mean, var)
        return [out, None, None, mean, var] if functional else out
    origin = m.spread_out(x)
    channels = origin.shape[1] if origin.layout.rank > 1 else 0
    if origin.layout.n != 0:
        raise Unsupported("the batch must be axis 0 here", "bring it to the front")
    order = list(range(origin.layout.rank))
    turned = x = origin
    if origin.layout.alone:
        if x.layout.rank > 5:
            x = m.reshaped(x, Layout((1, channels, math.prod(x.shape[2:])), 0))
    else:  # rows that are merged with N are places of a signal: N,C,merged...
        x = m.apart(origin)
        merged = len(origin.layout.groups()[0])
        order = [
            0,
            1 + merged,
            *range(1, 1 + merged),
            *range(2 + merged, x.layout.rank),
        ]
        turned = m.permuted(x, order)
        x = m.reshaped(turned, Layout((1, channels, math.prod(turned.shape[2:])), 0))
    slots = _affine(m, a, (channels,))
    for slot, held in (("mean", mean), ("var", var)):
        name = m.slot(held)
        m.running[name] = m.node.name
        m.graph.parameters[name].frozen = False
        slots.append((slot, name))
    out = m.made(
        "batch_norm",
        [x],
        x.layout,
        params=slots,
        eps=float(a.eps),
        momentum=float(a.momentum),
    )
    if x is not origin:
        back = m.reshaped(out, turned.layout)
        back = m.permuted(back, [order.index(i) for i in range(len(order))])
        out = Value(back.name, origin.layout)
    # The same tensors again: a second call moves what the first one has moved.
    return [out, None, None, mean, var] if functional else out


def _standardised(m: Mapper, a: Args, x: Value) -> Value:
    """Batch norm of what has no batch: of weights, in every mode."""
    if a.running_mean is not None:
        raise Unsupported("has running statistics of what has no batch")
    axes = [axis for axis in range(x.layout.rank) if axis != 1]
    apart = m.made("sub", [x, m.reduced("mean", x, axes, True)], x.layout)
    var = m.reduced("mean", m.unary("square", apart), axes, True)
    scale = m.unary("rsqrt", m.binary("add", var, float(a.eps)))
    out = m.made("mul", [apart, scale], x.layout)
    return channels_scaled(m, out, a.weight, a.bias)


def _frozen_norm(m: Mapper, a: Args, x: Value, mean: Any, var: Any) -> Value:
    """With fixed statistics: a scale and a shift for each channel."""
    if not isinstance(mean, Const) or not isinstance(var, Const):
        raise Unsupported("has computed statistics")
    shape = tuple(mean.tensor.shape[0] if i == 1 else 1 for i in range(x.layout.rank))

    def fitted(tensor: Any) -> Value:
        return m._fitted(Const(tensor.reshape(shape)), x.layout)

    out = m.made("sub", [x, fitted(mean.tensor)], x.layout)
    out = m.made("mul", [out, fitted(torch.rsqrt(var.tensor + a.eps))], x.layout)
    return channels_scaled(m, out, a.weight, a.bias)


@row("layer_norm")
def layer_norm(m: Mapper, a: Args) -> Value:
    """`layer_norm`"""
    x = m.value(a.input)
    dims = len(a.normalized_shape)
    if x.layout.n is not None and x.layout.n >= x.layout.rank - dims:
        raise Unsupported("normalises over the batch")
    computed = any(isinstance(one, Value) for one in (a.weight, a.bias))
    slots = [] if computed else _weights(m, weight=a.weight, bias=a.bias)
    out = m.made("layer_norm", [x], x.layout, params=slots, dims=dims, eps=float(a.eps))
    return _scaled(m, out, a.weight, a.bias) if computed else out


def _scaled(m: Mapper, x: Value, weight: Any, bias: Any) -> Value:
    """x weight + bias, which are computed, of the last axes."""
    out = x if weight is None else over("mul", m, x, m.value(weight))
    return out if bias is None else over("add", m, out, m.value(bias))


def _grouped_norm(m: Mapper, a: Args, groups: int) -> Value:
    origin = m.value(a.input)
    x = _channels_of_stack(m, origin, origin.layout.rank - 2)
    many = x.shape[1] // origin.shape[1]  # rows that are merged with N
    weight, bias = (a.weight, a.bias) if many == 1 else (None, None)
    slots = _weights(m, weight=weight, bias=bias) if m.known("group_norm") else []
    out = grouped_norm(m, x, groups * many, float(a.eps), weight, bias, slots)
    out = _stacked_again(m, out, origin)
    return out if many == 1 else channels_scaled(m, out, a.weight, a.bias)


@row("group_norm")
def group_norm(m: Mapper, a: Args) -> Value:
    """`group_norm`"""
    return _grouped_norm(m, a, int(a.num_groups))


@row("instance_norm")
def instance_norm(m: Mapper, a: Args) -> Value:
    """`group_norm` with a group for each channel; by running statistics `sub`, `mul`"""
    if not a.use_input_stats:
        return _frozen_norm(m, a, m.value(a.input), a.running_mean, a.running_var)
    if a.running_mean is not None:
        raise Unsupported(
            "normalises by each row's own statistics in training, by running ones in "
            "inference",
            "track_running_stats=False; or leave the layer in eval(): its running "
            "statistics are constants then, in training too",
        )
    return _grouped_norm(m, a, m.value(a.input).shape[1])


@row("rms_norm")
def rms_norm(m: Mapper, a: Args) -> Value:
    """`rms_norm`"""
    x = m.value(a.input)
    dims = len(a.normalized_shape)
    if x.layout.n is not None and x.layout.n >= x.layout.rank - dims:
        raise Unsupported("normalises over the batch")
    eps = float(torch.finfo(torch.float32).eps if a.eps is None else a.eps)
    if isinstance(a.weight, Value):
        return _scaled(m, rms_norm(m, Args(a, weight=None)), a.weight, None)
    if m.known("rms_norm"):
        slots = _weights(m, weight=a.weight)
        return m.made("rms_norm", [x], x.layout, params=slots, dims=dims, eps=eps)
    axes = list(range(x.layout.rank - dims, x.layout.rank))
    size = m.reduced("mean", m.unary("square", x), axes, True)
    out = m.made("mul", [x, m.unary("rsqrt", m.binary("add", size, eps))], x.layout)
    if a.weight is None:
        return out
    return m.made("mul", [out, m._fitted(m.value(a.weight), x.layout)], x.layout)


@row("cosine_similarity")
def cosine_similarity(m: Mapper, a: Args) -> Value:
    """sums of products over the norms"""
    x, y = m.value(a.x1), m.value(a.x2)
    axis = a.dim if a.dim < 0 else a.dim - max(x.layout.rank, y.layout.rank)

    def total(one: Value, two: Value) -> Value:
        both = over("mul", m, one, two)
        return m.reduced("sum", both, _axes(m, both, axis), False)

    def size(v: Value) -> Value:
        return root_of(m, total(v, v), float(a.eps) ** 2)

    return over("div", m, over("div", m, total(x, y), size(x)), size(y))


# ---- attention


@row("scaled_dot_product_attention")
def attention(m: Mapper, a: Args) -> Value:
    """`attention`; with another than a causal mask `matmul`, `softmax`"""
    q, k, v = (m.value(t) for t in (a.query, a.key, a["value"]))
    sides = q.shape[-2], k.shape[-2]
    mask, causal, window = _sides(a.attn_mask, *sides, bool(a.is_causal))
    width = q.shape[-1]
    factor = 1.0 if a.scale is None else float(a.scale) * math.sqrt(width)
    m.drops(float(a.dropout_p))
    rate = float(a.dropout_p) if m.dropout else 0.0
    whole = (
        q.layout.rank == 4
        and all(t.layout.n == 0 and t.layout.alone for t in (q, k, v))
        and mask is None
        and k.shape == v.shape
        and q.shape[-1] == k.shape[-1]
        and (not causal or q.shape[-2] == k.shape[-2])
    )
    if whole:
        if abs(factor - 1) > 1e-12:  # what is left of D^-0.5 sqrt D is rounding
            q = m.binary("mul", q, factor)
        before = [_before_repeating(m, t) for t in (k, v)]
        if before[0].shape == before[1].shape:
            k, v = before
        heads = [m.permuted(m.batch_first(t), [0, 2, 1, 3]) for t in (q, k, v)]
        options: Any = {"causal": causal, "window": window, "rate": rate}
        out = m.made("attention", heads, heads[0].layout, **options)
        return m.permuted(out, [0, 2, 1, 3])
    if a.get("enable_gqa") and k.shape[-3] != q.shape[-3]:
        k, v = (_repeat_heads(m, t, q.shape[-3] // t.shape[-3]) for t in (k, v))
    q = m.binary("mul", q, factor / math.sqrt(width))
    rank = k.layout.rank
    turned = m.permuted(k, [*range(rank - 2), rank - 1, rank - 2])
    scores = product(m, q, turned)
    mask = a.attn_mask if mask is not None or causal else None
    if a.is_causal:
        mask = Const(torch.ones(sides, dtype=torch.bool).tril())
    if mask is not None:
        scores = _masked(m, scores, mask)
    weights = m.unary(
        "softmax", scores, axis=scores.layout.ir_axis(scores.layout.rank - 1)
    )
    if rate > 0:
        weights = m.unary("dropout", weights, rate=rate)
    return product(m, weights, v)


def _repeat_heads(m: Mapper, t: Value, times: int) -> Value:
    args = Args(input=t, repeats=times, dim=t.layout.rank - 3)
    return repeat_interleave(m, args)  # type: ignore[no-any-return]


def _before_repeating(m: Mapper, t: Value) -> Value:
    """Of N,groups,1,S,D expanded and made N,heads,S,D: N,groups,S,D. The op shares
    the keys of neighbouring heads itself."""
    flat = m.graph.by_output.get(t.name)
    wide = flat and flat.op == "reshape" and m.graph.by_output.get(flat.inputs[0])
    if not flat or not wide or wide.op != "expand" or len(wide.shape) != 5:
        return t
    rows, groups, times, *rest = wide.shape
    narrow = m.graph.by_output.get(wide.inputs[0])
    one, heads = (rows, groups, 1, *rest), (rows, groups * times, *rest)
    if narrow is None or narrow.shape != one or flat.shape != heads:
        return t
    layout = t.layout.sized(1, groups)
    name = m.graph.reshape(narrow.output, one, layout.ir(t.spread), t.dtype)
    return Value(name, layout, t.dtype, t.spread)


def _sides(mask: Any, queries: int, keys: int, causal: bool) -> tuple[Any, bool, int]:
    """The mask that is left; whether query t sees the keys s <= t alone; how many of
    these it sees, the last ones (0: all).

    Libraries hand over a tensor for what SDPA calls is_causal: as an op of its own
    frameworks have a kernel for it, spelled out by matmul and softmax they have none.
    """
    if not isinstance(mask, Const):
        return mask, causal, 0
    mask = _boolean(mask)
    if mask.tensor.dtype != torch.bool:  # it is added
        return mask, causal, 0
    seen = mask.tensor.broadcast_to((*mask.tensor.shape[:-2], queries, keys))
    if bool(seen.all()):
        return None, causal, 0
    window = int(seen[..., -1, :].sum(-1).max())
    band = torch.ones_like(seen).tril().triu(1 - window)
    if queries == keys and bool((seen == band).all()):
        return None, True, window if window < keys else 0
    return mask, causal, 0


def _boolean(mask: Const) -> Const:
    """True where a key takes part, of a mask of 0 and -inf (or the least float32)."""
    if not mask.tensor.is_floating_point():
        return mask
    infinite = mask.tensor <= torch.finfo(torch.float32).min
    if bool(infinite.any()) and bool(((mask.tensor == 0) | infinite).all()):
        return Const(mask.tensor == 0, mask.n, source=mask.key or mask.source)
    return mask  # -1e30 is added in place of -inf


def _masked(m: Mapper, scores: Value, mask: Any) -> Value:
    """Boolean: True takes part; else added."""
    layout = scores.layout
    if isinstance(mask, Const):
        mask = _boolean(mask)
    if isinstance(mask, Const):
        kind = "bool" if mask.tensor.dtype == torch.bool else "f32"
    else:
        mask = m.value(mask)
        made, kind = m.graph.by_output.get(mask.name), mask.dtype
        m.masked |= kind == "bool" or (made is not None and made.op == "where")
    fitted = m._fitted(mask, layout)
    if kind == "bool":
        return m.made("where", [fitted, scores, m.number(-1e30)], layout)
    return m.made("add", [scores, fitted], layout)


# ---- recurrent layers

# What a layer adds for one step: from W_ih x + b_ih and the states the next states.
Step = Callable[[Mapper, Value, "list[Value]", "Recurrent"], "list[Value]"]


def _zero(state: Any) -> bool:
    return isinstance(state, Const) and not bool(state.tensor.any())


def _time_axis(m: Mapper, x: Value, batch_first: bool) -> Value:
    """As N,T,F: for T,N,F that costs nothing."""
    v = x if batch_first else m.permuted(x, [1, 0, 2])
    return m.batch_first(v, 3)


def _bias(m: Mapper, bias_in: Any, bias_hidden: Any) -> str:
    """The IR's one bias is the sum of torch's two."""
    for bias in (bias_in, bias_hidden):
        if not isinstance(bias, Param):
            raise Unsupported("has a frozen or computed bias")
    total = bias_in.tensor.detach() + bias_hidden.tensor.detach()
    m.merged_biases = True
    return m.graph.parameter(
        bias_in.key,
        total,
        not bias_in.tensor.requires_grad,
        [bias_in.key, bias_hidden.key],
    )


def _as_one(m: Mapper, w: Recurrent) -> Recurrent:
    """With the one bias that an `lstm` has which reads the same weights elsewhere."""
    if not isinstance(w.bias_ih, Param):
        return w
    found = m.readers(w.bias_ih.key)
    if len(found) < 2 or all(m._op_name(node) != "aten.lstm" for node in found):
        return w
    return replace(w, bias_ih=_bias(m, w.bias_ih, w.bias_hh), bias_hh=None)


def m_reads(m: Mapper, index: int) -> bool:
    """Whether something reads output `index` of the present node."""
    return any(u.args[1] == index and u.users for u in m.node.users)


@dataclass(frozen=True)
class Recurrent:
    """One layer and direction: weights and biases in torch's order."""

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any = None
    bias_hh: Any = None
    weight_hr: Any = None  # of an LSTM's projection

    @property
    def units(self) -> int:
        return int(self.weight_hh.tensor.shape[1])

    def widths(self, count: int) -> list[int]:
        """Of its states: h, and c, which is as wide as a gate."""
        projected = self.weight_hr is not None
        cell = self.weight_hh.tensor.shape[0] // 4 if projected else self.units
        return [self.units, int(cell)][:count]


def _directions(a: Args) -> list[list[Recurrent]]:
    """For each layer one or two directions."""
    each = 4 if a.has_biases else 2
    count = 2 if a.bidirectional else 1
    projects = len(a.params) != each * count * int(a.num_layers)
    each += projects
    groups = []
    for i in range(0, len(a.params), each):
        own = list(a.params[i : i + each])
        last = own.pop() if projects else None
        biases = own[2:] or [None, None]
        groups.append(Recurrent(own[0], own[1], biases[0], biases[1], last))
    return [groups[i : i + count] for i in range(0, len(groups), count)]


def _gates(m: Mapper, x: Value, weight: Any, bias: Any) -> Value:
    layout = x.layout.sized(x.layout.rank - 1, weight.tensor.shape[0])
    return m.made("linear", [x], layout, params=_weights(m, weight=weight, bias=bias))


def _lstm_step(
    m: Mapper, from_x: Value, state: list[Value], w: Recurrent
) -> list[Value]:
    """(i, f, g, o) = from_x + W_hh h + b_hh, c = sigm(f) c + sigm(i) tanh(g),
    h = sigm(o) tanh(c); gives h and c."""
    h, c = state
    from_h = _gates(m, h, w.weight_hh, w.bias_hh)
    i, f, g, o = split_evenly(m, m.made("add", [from_x, from_h], from_x.layout), 4)
    lay = g.layout

    def times(gate: Value, other: Value) -> Value:
        return m.made("mul", [m.unary("sigmoid", gate), other], lay)

    c = m.made("add", [times(f, c), times(i, m.unary("tanh", g))], lay)
    h = times(o, m.unary("tanh", c))
    return [h if w.weight_hr is None else _gates(m, h, w.weight_hr, None), c]


def _gru_step(
    m: Mapper, from_x: Value, state: list[Value], w: Recurrent
) -> list[Value]:
    """r, z = sigm(x + h), n = tanh(x_n + r h_n), h = n + z (h - n)."""
    (h,) = state
    xr, xz, xn = split_evenly(m, from_x, 3)
    hr, hz, hn = split_evenly(m, _gates(m, h, w.weight_hh, w.bias_hh), 3)
    lay = xn.layout
    r = m.unary("sigmoid", m.made("add", [xr, hr], lay))
    z = m.unary("sigmoid", m.made("add", [xz, hz], lay))
    n = m.made("add", [xn, m.made("mul", [r, hn], lay)], lay)
    n = m.unary("tanh", n)
    back = m.made("mul", [z, m.made("sub", [h, n], lay)], lay)
    return [m.made("add", [n, back], lay)]


def _elman_step(function: str) -> Step:
    def step(m: Mapper, from_x: Value, state: list[Value], w: Recurrent) -> list[Value]:
        from_h = _gates(m, state[0], w.weight_hh, w.bias_hh)
        total = m.made("add", [from_x, from_h], from_x.layout)
        return [m.unary(function, total)]

    return step


LONGEST_UNROLLED = 64


def _unrolled(
    m: Mapper, a: Args, step: Step, states: Sequence[Any], outputs: int
) -> list[Any]:
    """Step by step: where no op of the IR starts from this state, or gives it."""
    x = m.value(a.input)
    time = 1 if a.batch_first else 0
    steps = x.shape[time]
    if x.layout.n == time or steps > LONGEST_UNROLLED:
        raise Unsupported(
            f"has {steps} steps, and the IR's op lacks its state, biases or form",
            f"at most {LONGEST_UNROLLED} steps, or a zero state and no last cell state",
        )
    lasts: list[list[Value]] = [[] for _ in states]
    for number, layer in enumerate(_directions(a)):
        outs = []
        for direction, w in enumerate(layer):
            w = _as_one(m, w) if step is _lstm_step else w
            place = number * len(layer) + direction
            widths = zip(states, w.widths(len(states)))
            state = [_state(m, s, place, x, time, width) for s, width in widths]
            from_x = _gates(m, x, w.weight_ih, w.bias_ih)
            order = range(steps - 1, -1, -1) if direction else range(steps)
            made: dict[int, Value] = {}
            for t in order:
                state = step(m, selected(m, from_x, time, t), state, w)
                made[t] = state[0]
            outs.append(m.stack([made[t] for t in range(steps)], time))
            for kept, value in zip(lasts, state):
                kept.append(value)
        x = m.concat(outs, 2)
        if m.dropout and a.dropout > 0 and a.train and number + 1 < int(a.num_layers):
            x = m.unary("dropout", x, rate=float(a.dropout))
    return [x, *(Stacked(tuple(kept)) for kept in lasts)][:outputs]


def _state(m: Mapper, state: Any, place: int, x: Value, time: int, units: int) -> Value:
    """The state that a layer and direction starts from."""
    shape = (*(s for i, s in enumerate(x.shape) if i not in (time, 2)), units)
    if isinstance(state, Stacked):
        return m.value(state.items[place])
    if isinstance(state, Const):
        rows = m.one_row(state, 1)[place].reshape(-1, state.tensor.shape[-1])
        if bool((rows != rows[0]).any()):
            raise Unsupported("starts from other states where axes are merged with N")
        layout = Layout(shape, 0, x.layout.before, x.layout.after)
        held = m._fitted(Const(rows[0]), layout)
        return held if layout.alone else m.expand(held, layout)
    return selected(m, m.value(state), 0, place)


@row("lstm_cell")
def lstm_cell(m: Mapper, a: Args) -> list[Value]:
    """its formula: `linear`, `sigmoid`, `tanh`, `mul`, `add`"""
    w = _as_one(m, Recurrent(a.w_ih, a.w_hh, a.b_ih, a.b_hh))
    x = m.value(a.input)
    state = [_cell_state(m, s, x) for s in a.hx]
    return _lstm_step(m, _gates(m, x, w.weight_ih, w.bias_ih), state, w)


def _cell_state(m: Mapper, state: Any, x: Value) -> Value:
    if not isinstance(state, Const):
        return m.value(state)
    layout = x.layout.sized(x.layout.rank - 1, state.tensor.shape[-1])
    return m._fitted(Const(m.one_row(state, 1).reshape(-1)), layout)


def _cell(step: Step) -> Row:
    def add(m: Mapper, a: Args) -> Value:
        w = Recurrent(a.w_ih, a.w_hh, a.b_ih, a.b_hh)
        x = m.value(a.input)
        state = [_cell_state(m, a.hx, x)]
        return step(m, _gates(m, x, w.weight_ih, w.bias_ih), state, w)[0]

    add.__doc__ = lstm_cell.__doc__
    return add


row("gru_cell")(_cell(_gru_step))
row("rnn_tanh_cell")(_cell(_elman_step("tanh")))
row("rnn_relu_cell")(_cell(_elman_step("relu")))


@row("rnn_tanh", "rnn_relu")
def elman(m: Mapper, a: Args) -> list[Any]:
    """step by step: `linear`, `add`, `tanh` or `relu`"""
    function = "tanh" if m._op_name(m.node).endswith("tanh") else "relu"
    return _unrolled(m, a, _elman_step(function), [a.hx], 2)


def _layered(m: Mapper, a: Args, op: str, slots: Any) -> tuple[Value, Stacked]:
    """Layers of an op of the IR from a zero state: the sequence and the last states."""
    x = _time_axis(m, m.value(a.input), bool(a.batch_first))
    lasts = []
    for number, layer in enumerate(_directions(a)):
        outs = []
        for direction, w in enumerate(layer):
            layout = x.layout.sized(2, w.units)
            back = bool(direction)
            h = m.made(op, [x], layout, params=slots(w), reverse=back)
            end = 0 if back else h.shape[1] - 1
            last = m.sliced(h, 1, end, end + 1)
            lasts.append(m.reshaped(last, last.layout.dropped([1], False)))
            outs.append(h)
        x = m.concat(outs, 2)
        if m.dropout and a.dropout > 0 and a.train and number + 1 < int(a.num_layers):
            x = m.unary("dropout", x, rate=float(a.dropout))
    out = x if a.batch_first else m.permuted(x, [1, 0, 2])
    return out, Stacked(tuple(lasts))


def _batched(m: Mapper, a: Args) -> bool:
    """The batch is an axis of its own, where the IR's op has it."""
    lay = m.value(a.input).layout
    return lay.rank == 3 and lay.alone and lay.n == (0 if a.batch_first else 1)


@row("lstm")
def lstm(m: Mapper, a: Args) -> list[Any]:
    """`lstm` for each layer and direction; else step by step

    Step by step: from another state than zero, or where its last cell state is read."""
    if "batch_sizes" in a:
        raise Unsupported("takes packed sequences", "padded ones")

    def slots(w: Recurrent) -> list[tuple[str, str]]:
        own = _weights(m, weight_ih=w.weight_ih, weight_hh=w.weight_hh)
        if w.bias_ih is not None:
            own.append(("bias", _bias(m, w.bias_ih, w.bias_hh)))
        return own

    plain = all(_zero(s) for s in a.hx) and not m_reads(m, 2) and _batched(m, a)
    if not plain or any(w.weight_hr is not None for ws in _directions(a) for w in ws):
        return _unrolled(m, a, _lstm_step, a.hx, 3)
    return [*_layered(m, a, "lstm", slots), None]


@row("gru")
def gru(m: Mapper, a: Args) -> list[Any]:
    """`gru` for each layer and direction; else step by step"""
    if "batch_sizes" in a:
        raise Unsupported("takes packed sequences", "padded ones")

    def slots(w: Recurrent) -> list[tuple[str, str]]:
        return _weights(
            m,
            weight_ih=w.weight_ih,
            weight_hh=w.weight_hh,
            bias_ih=w.bias_ih,
            bias_hh=w.bias_hh,
        )

    if not _zero(a.hx) or not _batched(m, a) or not m.known("gru"):
        return _unrolled(m, a, _gru_step, [a.hx], 2)
    return list(_layered(m, a, "gru", slots))
