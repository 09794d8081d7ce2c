"""What JAX scripts call (emit/helpers.h)."""

import jax
import jax.numpy as jnp
from jax import lax
from numpy_helpers import resize_matrix


def below(tree, path):
    """What stands below a path, by the rest of the names."""
    start = path + "."
    return {name[len(start) :]: x for name, x in tree.items() if name.startswith(start)}


def half(array):
    """In bfloat16; its gradient comes back in float32."""
    return array.astype(jnp.bfloat16)


def half_float16(array):
    """In float16; its gradient comes back in float32."""
    return array.astype(jnp.float16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(x.astype(jnp.float32), *arguments, **options))


def padded_embedding(table, ids, padding):
    """Rows of the table; the gradient leaves out the row that pads."""
    rows = table[ids]
    return jnp.where((ids == padding)[..., None], lax.stop_gradient(rows), rows)


def conv1d(x, kernel, bias=None, *, stride, padding, dilation=(1,), groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=stride,
        padding=padding,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=("NWC", "WIO", "NWC"),
    )
    return y if bias is None else half(y + bias)


def conv2d(x, kernel, bias=None, *, stride, padding, dilation=(1, 1), groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=stride,
        padding=padding,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y if bias is None else half(y + bias)


def conv3d(x, kernel, bias=None, *, stride, padding, dilation=(1, 1, 1), groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=stride,
        padding=padding,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
    )
    return y if bias is None else half(y + bias)


def conv1d_even(x, kernel, bias=None, *, stride=1, padding=0, groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride,),
        padding=((padding, padding),),
        feature_group_count=groups,
        dimension_numbers=("NWC", "WIO", "NWC"),
    )
    return y if bias is None else half(y + bias)


def conv2d_even(x, kernel, bias=None, *, stride=1, padding=0, groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride, stride),
        padding=((padding, padding), (padding, padding)),
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y if bias is None else half(y + bias)


def conv3d_even(x, kernel, bias=None, *, stride=1, padding=0, groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride,) * 3,
        padding=((padding, padding),) * 3,
        feature_group_count=groups,
        dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
    )
    return y if bias is None else half(y + bias)


def conv_transpose(x, kernel, bias=None, *, stride, padding, dilation=None, groups=1):
    """`padding`: around the input with zeros between its places."""
    places = "DHW"[-len(stride) :]
    y = lax.conv_general_dilated(
        x,
        jnp.flip(kernel, range(len(stride))),
        window_strides=(1,) * len(stride),
        padding=padding,
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=(f"N{places}C", f"{places}IO", f"N{places}C"),
    )
    return y if bias is None else half(y + bias)


def scatter_add(values, places, size):
    """Adds up what goes to the same place, for each row of the axes before."""
    shape = (*places.shape[:-1], size, *values.shape[places.ndim :])
    rows = jnp.indices(places.shape, sparse=True)[:-1]
    return jnp.zeros(shape, values.dtype).at[(*rows, places)].add(values)


def linear(x, weight, bias):
    return half(x @ weight + bias)


def batch_norm(x, scale, shift, stats, mean, var, *, eps=1e-5, momentum=0.01):
    """Normalises with the statistics of the batch and updates the running ones."""
    axes = tuple(range(x.ndim - 1))
    batch_mean, batch_var = x.mean(axes), x.var(axes)
    stats[mean] = (1 - momentum) * stats[mean] + momentum * batch_mean
    stats[var] = (1 - momentum) * stats[var] + momentum * batch_var
    return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift


def batch_norm_predicts(x, scale, shift, mean, var, *, eps=1e-5):
    """Normalises with the running statistics."""
    return (x - mean) * (lax.rsqrt(var + eps) * scale) + shift


def layer_norm(x, scale=1.0, shift=0.0, *, dims, eps=1e-6):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * scale + shift


def rms_norm(x, scale=1.0, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    return x * lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + eps) * scale


def group_norm(x, scale=1.0, shift=0.0, *, groups, eps):
    y = x.reshape(*x.shape[:-1], groups, -1)
    axes = (*range(1, x.ndim - 1), -1)
    mean, var = y.mean(axes, keepdims=True), y.var(axes, keepdims=True)
    return ((y - mean) * lax.rsqrt(var + eps)).reshape(x.shape) * scale + shift


def max_pool1d(x, *, window, stride, padding=((0, 0),)):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )


def max_pool2d(x, *, window, stride, padding=((0, 0), (0, 0))):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )


def max_pool3d(x, *, window, stride, padding=((0, 0), (0, 0), (0, 0))):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )


def avg_pool1d(x, *, window, stride, padding=((0, 0),), count_include_pad=False):
    def window_sum(values):
        return lax.reduce_window(
            values,
            0.0,
            lax.add,
            window_dimensions=(1, *window, 1),
            window_strides=(1, *stride, 1),
            padding=((0, 0), *padding, (0, 0)),
        )

    if count_include_pad:
        return window_sum(x) / window[0]
    return window_sum(x) / window_sum(jnp.ones((1, *x.shape[1:2], 1), x.dtype))


def avg_pool2d(x, *, window, stride, padding=((0, 0), (0, 0)), count_include_pad=False):
    def window_sum(values):
        return lax.reduce_window(
            values,
            0.0,
            lax.add,
            window_dimensions=(1, *window, 1),
            window_strides=(1, *stride, 1),
            padding=((0, 0), *padding, (0, 0)),
        )

    if count_include_pad:
        return window_sum(x) / (window[0] * window[1])
    return window_sum(x) / window_sum(jnp.ones((1, *x.shape[1:3], 1), x.dtype))


def avg_pool3d(
    x, *, window, stride, padding=((0, 0), (0, 0), (0, 0)), count_include_pad=False
):
    def window_sum(values):
        return lax.reduce_window(
            values,
            0.0,
            lax.add,
            window_dimensions=(1, *window, 1),
            window_strides=(1, *stride, 1),
            padding=((0, 0), *padding, (0, 0)),
        )

    if count_include_pad:
        return window_sum(x) / (window[0] * window[1] * window[2])
    return window_sum(x) / window_sum(jnp.ones((1, *x.shape[1:4], 1), x.dtype))


def resize(x, size, *, mode, coordinates):
    """By a product along each axis; jax.image.resize reads other places."""
    for axis, new in enumerate(size, 1):
        matrix = resize_matrix(x.shape[axis], new, mode, coordinates)
        product = jnp.tensordot(x, matrix.astype(x.dtype), (axis, 0))
        x = jnp.moveaxis(product, -1, axis)
    return x


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def hard_sigmoid(x, alpha, beta):
    return jnp.clip(alpha * x + beta, 0, 1)


def local_response_norm(x, *, size, alpha, beta, k):
    squares = lax.reduce_window(
        x * x,
        0.0,
        lax.add,
        window_dimensions=(1, 1, 1, size),
        window_strides=(1, 1, 1, 1),
        padding=((0, 0), (0, 0), (0, 0), (size // 2, (size - 1) // 2)),
    )
    return x / (k + alpha * squares) ** beta


def attention(q, k, v, last=None, *, causal=False, window=0, rate=None, key=None):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    if causal:
        seen = jnp.tri(q.shape[1], dtype=bool)
        if window:
            seen &= ~jnp.tri(q.shape[1], k=-window, dtype=bool)
        scores = jnp.where(seen, scores, -jnp.inf)
    if last is not None:
        seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
        scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    if rate is not None:
        weights = dropout(key, weights, rate)
    return jnp.einsum("nhts,nshd->nthd", weights, v)


def cached_attention(q, k, v, positions, cache, keys, values, *, window=0):
    """k and v join the cache at their positions; then a query sees it up to its own."""
    for name, new in ((keys, k), (values, v)):
        start = positions[0]
        cache[name] = lax.dynamic_update_slice_in_dim(cache[name], new, start, axis=1)
    k, v = cache[keys], cache[values]
    grouped = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
    scores = jnp.einsum("ntgrd,nsgd->ngrts", grouped, k) * q.shape[-1] ** -0.5
    places, positions = jnp.arange(k.shape[1]), positions[:, None]
    seen = places <= positions
    if window:
        seen &= places > positions - window
    scores = jnp.where(seen, scores, -jnp.inf)
    x = jnp.einsum("ngrts,nsgd->ntgrd", jax.nn.softmax(scores), v)
    return x.reshape(q.shape)


# The sums over keys are not rounded.
def cached_attention_mixed(q, k, v, positions, cache, keys, values, *, window=0):
    """k and v join the cache at their positions; then a query sees it up to its own.

    Products are in half precision, scores and softmax in float32.
    """
    for name, new in ((keys, k), (values, v)):
        start = positions[0]
        cache[name] = lax.dynamic_update_slice_in_dim(cache[name], new, start, axis=1)
    k, v = cache[keys], cache[values]
    grouped = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
    scores = jnp.einsum("ntgrd,nsgd->ngrts", grouped, k).astype(jnp.float32)
    scores = scores * q.shape[-1] ** -0.5
    places, positions = jnp.arange(k.shape[1]), positions[:, None]
    seen = places <= positions
    if window:
        seen &= places > positions - window
    scores = jnp.where(seen, scores, -jnp.inf)
    x = jnp.einsum("ngrts,nsgd->ntgrd", half(jax.nn.softmax(scores)), v)
    return x.reshape(q.shape)


# The sums over keys are not rounded.
def attention_mixed(q, k, v, last=None, *, causal=False, window=0, rate=None, key=None):
    """Products are in half precision, scores and softmax in float32."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k).astype(jnp.float32)
    scores = scores * q.shape[-1] ** -0.5
    if causal:
        seen = jnp.tri(q.shape[1], dtype=bool)
        if window:
            seen &= ~jnp.tri(q.shape[1], k=-window, dtype=bool)
        scores = jnp.where(seen, scores, -jnp.inf)
    if last is not None:
        seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
        scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    if rate is not None:
        weights = dropout(key, weights, rate)
    return jnp.einsum("nhts,nshd->nthd", half(weights), v)


def grouped_attention(q, k, v, last=None, *, causal=False, window=0):
    """Neighbouring heads of q share a head of k and v, which are not copied."""

    def attend(heads):
        return attention(heads, k, v, last=last, causal=causal, window=window)

    shared = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
    return jax.vmap(attend, in_axes=3, out_axes=3)(shared).reshape(q.shape)


def lstm(x, weight_ih, weight_hh, bias=0.0, reverse=False):
    """The whole sequence from a zero state; the gates are i, f, g, o."""

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weight_hh, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    gates = x @ weight_ih + bias
    zeros = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, (zeros, zeros), jnp.swapaxes(gates, 0, 1), reverse=reverse)
    return jnp.swapaxes(h, 0, 1)


# Sums over time are not rounded: the cell is in float32, and so is what the steps add to a
# gradient.
def lstm_mixed(x, weight_ih, weight_hh, bias=0.0, reverse=False):
    """The whole sequence from a zero state; the gates are i, f, g, o.

    Products and outputs are in half precision, gates and cell in float32.
    """

    def step(state, gates):
        h, c = state
        gates = (gates + h @ half(weight_hh)).astype(jnp.float32)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = (jax.nn.sigmoid(o) * jnp.tanh(c)).astype(x.dtype)
        return (h, c), h

    gates = half(x @ half(weight_ih) + bias)
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    c = h.astype(jnp.float32)
    _, h = lax.scan(step, (h, c), jnp.swapaxes(gates, 0, 1), reverse=reverse)
    return jnp.swapaxes(h, 0, 1)


def gru(x, weight_ih, weight_hh, bias_ih=0.0, bias_hh=0.0, reverse=False):
    """The whole sequence from a zero state; the gates are r, z, n."""

    def step(h, gates):
        xr, xz, xn = jnp.split(gates, 3, axis=-1)
        hr, hz, hn = jnp.split(h @ weight_hh + bias_hh, 3, axis=-1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, h

    gates = x @ weight_ih + bias_ih
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, h, jnp.swapaxes(gates, 0, 1), reverse=reverse)
    return jnp.swapaxes(h, 0, 1)


def gru_mixed(x, weight_ih, weight_hh, bias_ih=0.0, bias_hh=0.0, reverse=False):
    """The whole sequence from a zero state; the gates are r, z, n.

    Products and outputs are in half precision, gates and state in float32.
    """

    def step(h, gates):
        xr, xz, xn = jnp.split(gates.astype(jnp.float32), 3, axis=-1)
        hidden = (h.astype(x.dtype) @ half(weight_hh)).astype(jnp.float32) + bias_hh
        hr, hz, hn = jnp.split(hidden, 3, axis=-1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, h.astype(x.dtype)

    gates = half(x @ half(weight_ih) + bias_ih)
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), jnp.float32)
    _, h = lax.scan(step, h, jnp.swapaxes(gates, 0, 1), reverse=reverse)
    return jnp.swapaxes(h, 0, 1)
