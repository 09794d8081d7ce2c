"""What TensorFlow scripts call (emit/helpers.h)."""

import math

import tensorflow as tf
from numpy_helpers import resize_matrix


def half(x):
    return tf.cast(x, tf.bfloat16)


def half_float16(x):
    return tf.cast(x, tf.float16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(tf.cast(x, tf.float32), *arguments, **options))


def padded_embedding(table, ids, padding):
    """Rows of the table; the gradient leaves out the row that pads."""
    rows = tf.nn.embedding_lookup(table, ids)
    return tf.where((ids == padding)[..., None], tf.stop_gradient(rows), rows)


def linear(x, weight, bias):
    """tf.matmul would repeat the weight for every row of a sequence."""
    return tf.nn.bias_add(tf.tensordot(x, weight, axes=1), bias)


def linear_mixed(x, weight, bias):
    """tf.matmul would repeat the weight for every row of a sequence."""
    return in_float32(tf.nn.bias_add, tf.tensordot(x, weight, axes=1), bias)


def linear_rows(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def scatter_add(values, places, size):
    """Adds up what goes to the same place, for each row of the axes before."""
    ids = tf.reshape(places, (-1, places.shape[-1]))
    rows = tf.shape(ids, ids.dtype)[0]
    ids = tf.reshape(ids + size * tf.range(rows)[:, None], tf.shape(places))
    sums = tf.math.unsorted_segment_sum(values, ids, size * rows)
    axes = (*places.shape[1:-1], size, *values.shape[len(places.shape) :])
    return tf.reshape(sums, (-1, *axes))


@tf.function(jit_compile=True)
def conv2d_xla(x, kernel, *, strides, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""
    return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)


@tf.function(jit_compile=True)
def conv1d_xla(x, kernel, *, stride, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""
    return tf.nn.conv1d(x, kernel, stride, padding, dilations=dilations)


# A tf.function gives no gradient of a variable of several devices that it gets as an argument.
def conv2d_xla_synced(x, kernel, *, strides, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""

    @tf.function(jit_compile=True)
    def convolve(x, kernel):
        return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)

    return convolve(x, tf.identity(kernel))


def conv1d_xla_synced(x, kernel, *, stride, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""

    @tf.function(jit_compile=True)
    def convolve(x, kernel):
        return tf.nn.conv1d(x, kernel, stride, padding, dilations=dilations)

    return convolve(x, tf.identity(kernel))


def dilated(kernel, dilations):
    """Zeros between the kernel's places: TensorFlow's CPU kernels lack this dilation."""
    for axis, step in enumerate(dilations):
        before, n, after = (
            kernel.shape[:axis],
            kernel.shape[axis],
            kernel.shape[axis + 1 :],
        )
        places = [[0, 0]] * (len(kernel.shape) + 1)
        places[axis + 1] = [0, step - 1]
        kernel = tf.pad(tf.expand_dims(kernel, axis + 1), places)
        kernel = tf.reshape(kernel, (*before, n * step, *after))
        kernel = tf.gather(kernel, range(n * step - step + 1), axis=axis)
    return kernel


def conv3d(x, kernel, *, strides, padding, dilations, groups):
    """tf.nn.conv3d itself has neither dilation nor groups on a CPU."""
    kernel = dilated(kernel, dilations)
    parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1), strict=True)
    return tf.concat([tf.nn.conv3d(a, k, strides, padding) for a, k in parts], -1)


def conv_transpose(
    convolve, x, kernel, *, size, strides, cut=(), dilations=(), groups=1
):
    """By a function of tf.nn. `size`: of the output, before `cut` is taken off."""
    if dilations:
        kernel = dilated(kernel, dilations)
    shape = (tf.shape(x)[0], *size, kernel.shape[-2])
    if groups == 1:
        y = convolve(x, kernel, shape, strides, "VALID")
    else:
        parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1), strict=True)
        y = tf.concat([convolve(a, k, shape, strides, "VALID") for a, k in parts], -1)
    if cut:
        places = [slice(a, n - b) for (a, b), n in zip(cut, size, strict=True)]
        y = y[(slice(None), *places)]
    return y


def batch_norm(x, scale, shift, running_mean, running_var, *, eps=1e-3, momentum=0.01):
    """Normalises with the statistics of the batch and updates the running ones."""
    mean, var = tf.nn.moments(x, axes=list(range(x.shape.rank - 1)))
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


# On several devices a mean over the rows of one of them is no statistic of the batch.
def batch_norm_synced(
    x, scale, shift, running_mean, running_var, *, eps=1e-3, momentum=0.01
):
    """Normalises with statistics of the whole batch and updates the running ones."""
    replica = tf.distribute.get_replica_context()
    axes = list(range(x.shape.rank - 1))
    mean = replica.all_reduce("mean", tf.reduce_mean(x, axes))
    var = replica.all_reduce("mean", tf.reduce_mean(tf.square(x - mean), axes))
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


# One kernel in place of several, for pictures in float32 alone. Without XLA, which fuses by itself,
# a step of ResNet-18 and -50 on processors takes 9 to 15% less time with it.
def batch_norm_fused(
    x, scale, shift, running_mean, running_var, *, eps=1e-3, momentum=0.01
):
    """Normalises with the statistics of the batch and updates the running ones."""
    if x.dtype == tf.float32 and x.shape.rank == 4:  # one kernel does all of it
        y, mean, var, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=shift, mean=[], variance=[], epsilon=eps
        )
        count = tf.cast(tf.size(x) // x.shape[-1], x.dtype)
        var *= 1 - 1 / count  # the kernel divides by count - 1
    else:
        mean, var = tf.nn.moments(x, axes=list(range(x.shape.rank - 1)))
        y = tf.nn.batch_normalization(x, mean, var, shift, scale, eps)
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return y


def batch_norm_predicts(x, scale, shift, mean, var, *, eps=1e-3):
    """Normalises with the running statistics."""
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def batch_norm_predicts_fused(x, scale, shift, mean, var, *, eps=1e-3):
    """Normalises with the running statistics."""
    if x.dtype == tf.float32 and x.shape.rank == 4:  # one kernel does all of it
        return tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=scale,
            offset=shift,
            mean=mean,
            variance=var,
            epsilon=eps,
            is_training=False,
        )[0]
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def layer_norm(x, scale=1.0, shift=0.0, *, dims, eps=1e-3):
    mean, var = tf.nn.moments(x, axes=list(range(-dims, 0)), keepdims=True)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def rms_norm(x, scale=1.0, *, dims, eps):
    square = tf.reduce_mean(x * x, axis=list(range(-dims, 0)), keepdims=True)
    return x * tf.math.rsqrt(square + eps) * scale


def gelu(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    root = math.sqrt(8 / math.pi)  # half of 1 + tanh(z) is sigmoid(2 z): fewer kernels
    return x * tf.sigmoid(x * (root + 0.044715 * root * tf.square(x)))


def group_norm(x, scale=1.0, shift=0.0, *, groups, eps):
    *places, c = x.shape[1:]
    y = tf.reshape(x, (-1, *places, groups, c // groups))
    axes = (*range(1, x.shape.rank - 1), x.shape.rank)
    mean, var = tf.nn.moments(y, axes=axes, keepdims=True)
    y = (y - mean) * tf.math.rsqrt(var + eps)
    return tf.reshape(y, (-1, *places, c)) * scale + shift


def max_pool1d(x, *, ksize, strides, padding):
    """tf.nn.max_pool1d takes no explicit padding."""
    x = tf.pad(x, padding, constant_values=x.dtype.min)
    return tf.nn.max_pool1d(x, ksize, strides, "VALID")


def max_pool2d(x, *, ksize, strides, padding):
    """XLA has no pooling with explicit padding."""
    x = tf.pad(x, padding, constant_values=x.dtype.min)
    return tf.nn.max_pool2d(x, ksize, strides, "VALID")


def avg_pool1d(x, *, ksize, strides, padding, count_include_pad):
    """tf.nn.avg_pool1d takes no explicit padding."""
    y = tf.nn.avg_pool1d(tf.pad(x, padding), ksize, strides, "VALID")
    if count_include_pad:
        return y
    inside = tf.pad(tf.ones((1, *x.shape[1:2], 1), x.dtype), padding)
    return y / tf.nn.avg_pool1d(inside, ksize, strides, "VALID")


def avg_pool2d(x, *, ksize, strides, padding, count_include_pad):
    """tf.nn.avg_pool2d takes no explicit padding."""
    y = tf.nn.avg_pool2d(tf.pad(x, padding), ksize, strides, "VALID")
    if count_include_pad:
        return y
    inside = tf.pad(tf.ones((1, *x.shape[1:3], 1), x.dtype), padding)
    return y / tf.nn.avg_pool2d(inside, ksize, strides, "VALID")


def pool3d(pool, x, *, ksize, strides):
    """Over H and W, then over D: TensorFlow's own pools along three axes have no float64."""
    d, h, w, c = x.shape[1:]
    x = pool(tf.reshape(x, (-1, h, w, c)), ksize[1:], strides[1:], "VALID")
    h, w = x.shape[1:3]
    x = tf.reshape(x, (-1, d, h * w, c))
    x = pool(x, (ksize[0], 1), (strides[0], 1), "VALID")
    return tf.reshape(x, (-1, x.shape[1], h, w, c))


def avg_pool3d(x, *, ksize, strides, padding):
    """The mean over the part of each window that lies inside."""

    def mean(values):
        values = tf.pad(values, padding)
        return pool3d(tf.nn.avg_pool2d, values, ksize=ksize, strides=strides)

    return mean(x) / mean(tf.ones((1, *x.shape[1:4], 1), x.dtype))


def resize(x, size, *, mode, coordinates):
    """By a product along each axis; tf.image.resize reads other places."""
    for axis, new in enumerate(size, 1):
        matrix = resize_matrix(x.shape[axis], new, mode, coordinates)
        x = tf.tensordot(x, tf.constant(matrix, x.dtype), (axis, 0))
        last = x.shape.rank - 1
        x = tf.transpose(x, (*range(axis), last, *range(axis, last)))
    return x


def resize_bilinear(x, size):
    """tf.image.resize, which computes in float32; float64 by products."""
    if x.dtype == tf.float64:
        return resize(x, size, mode="linear", coordinates="half_pixel")
    return tf.cast(tf.image.resize(x, size), x.dtype)


def repeat_places(x, times):
    """Every place so many times along each axis."""
    for axis, count in enumerate(times, 1):
        sizes = (*x.shape[1:axis], count * x.shape[axis], *x.shape[axis + 1 :])
        x = tf.reshape(tf.stack([x] * count, axis + 1), (-1, *sizes))
    return x


def hard_swish(x):
    return x * tf.nn.relu6(x + 3) / 6


def hard_sigmoid(x, alpha, beta):
    return tf.clip_by_value(alpha * x + beta, 0, 1)


def elu(x, alpha):
    return tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0)))


def leaky_relu(x, slope):
    """Exact also in float64, where tf.nn.leaky_relu has its slope rounded to float32."""
    return tf.where(x > 0, x, slope * x)


def mish(x):
    return x * tf.tanh(tf.math.softplus(x))


def local_response_norm(x, *, size, alpha, beta, k):
    """As tf.nn.local_response_normalization, which has no float64 and odd sizes only."""
    channels = x.shape[-1]
    sides = [size // 2, (size - 1) // 2]
    squares = tf.pad(x * x, [[0, 0], [0, 0], [0, 0], sides])
    total = tf.add_n([squares[..., i : i + channels] for i in range(size)])
    return x / (k + alpha * total) ** beta


# The masks add half of the least number: a score leaves no trace in it, nor does the softmax
# in any gradient, and both masks together are a number yet. Choosing by tf.where costs three
# kernels more, backward.
def attention(q, k, v, last=None, *, causal=False, window=0, rate=None):
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5
    if causal:
        seen = tf.ones(scores.shape[2:], scores.dtype)
        seen = tf.linalg.band_part(seen, window - 1, 0)  # -1: the whole triangle
        scores += (1 - seen) * (scores.dtype.min / 2)
    if last is not None:
        after = tf.range(scores.shape[-1]) > last[:, None, None, None]
        scores += tf.cast(after, scores.dtype) * (scores.dtype.min / 2)
    weights = tf.nn.softmax(scores)
    if rate is not None:
        weights = tf.nn.dropout(weights, rate=rate)
    return tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3))


def empty_cache(weights, *shape):
    """Zeros for places, rows, heads, width, in the type of the weights."""
    dtype = next(iter(weights.values())).dtype
    return tf.Variable(half(tf.zeros(shape, dtype)), trainable=False)


def cached_attention(q, k, v, positions, keys, values, *, window=0):
    """k and v join the caches at their positions; then a query sees them up to its own."""
    for cache, new in ((keys, k), (values, v)):
        new = tf.IndexedSlices(tf.transpose(new, (1, 0, 2, 3)), positions)
        cache.scatter_update(new)
    heads = (q.shape[0], q.shape[1], keys.shape[2], -1, q.shape[3])
    scores = tf.einsum("ntgrd,sngd->ngrts", tf.reshape(q, heads), keys)
    places, positions = tf.range(keys.shape[0]), positions[:, None]
    seen = places <= positions
    if window:
        seen &= places > positions - window
    lowest = tf.constant(scores.dtype.min / 2, scores.dtype)
    scores = tf.where(seen, scores * q.shape[-1] ** -0.5, lowest)
    x = tf.einsum("ngrts,sngd->ntgrd", tf.nn.softmax(scores), values)
    return tf.reshape(x, q.shape)


# The sums over keys are not rounded.
def cached_attention_mixed(q, k, v, positions, keys, values, *, window=0):
    """k and v join the caches at their positions; then a query sees them up to its own.

    Products are in half precision, scores and softmax in float32.
    """
    for cache, new in ((keys, k), (values, v)):
        new = tf.IndexedSlices(tf.transpose(new, (1, 0, 2, 3)), positions)
        cache.scatter_update(new)
    heads = (q.shape[0], q.shape[1], keys.shape[2], -1, q.shape[3])
    scores = tf.einsum("ntgrd,sngd->ngrts", tf.reshape(q, heads), keys)
    scores = tf.cast(scores, tf.float32) * q.shape[-1] ** -0.5
    places, positions = tf.range(keys.shape[0]), positions[:, None]
    seen = places <= positions
    if window:
        seen &= places > positions - window
    scores = tf.where(seen, scores, scores.dtype.min / 2)
    x = tf.einsum("ngrts,sngd->ntgrd", half(tf.nn.softmax(scores)), values)
    return tf.reshape(x, q.shape)


# The sums over keys are not rounded.
def attention_mixed(q, k, v, last=None, *, causal=False, window=0, rate=None):
    """Products are in half precision, scores and softmax in float32."""
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.cast(tf.matmul(q, k, transpose_b=True), tf.float32)
    scores = scores * q.shape[-1] ** -0.5
    if causal:
        seen = tf.ones(scores.shape[2:], scores.dtype)
        seen = tf.linalg.band_part(seen, window - 1, 0)  # -1: the whole triangle
        scores += (1 - seen) * (scores.dtype.min / 2)
    if last is not None:
        after = tf.range(scores.shape[-1]) > last[:, None, None, None]
        scores += tf.cast(after, scores.dtype) * (scores.dtype.min / 2)
    weights = tf.nn.softmax(scores)
    if rate is not None:
        weights = tf.nn.dropout(weights, rate=rate)
    return tf.transpose(tf.matmul(half(weights), v), (0, 2, 1, 3))


def grouped_attention(q, k, v, last=None, *, causal=False, window=0, rate=None):
    """Neighbouring heads of q share a head of k and v."""
    shared = q.shape[2] // k.shape[2]
    k, v = (tf.repeat(heads, shared, axis=2) for heads in (k, v))
    return attention(q, k, v, last=last, causal=causal, window=window, rate=rate)


# Unrolled: a loop within the graph, as tf.scan makes, keeps every state in lists for the backward
# pass, and the step takes up to half as long again (docs/benchmarks.md).
def lstm(x, weight_ih, weight_hh, bias=0.0, reverse=False):
    """The whole sequence from a zero state, unrolled; the gates are i, f, g, o."""
    gates = tf.tensordot(x, weight_ih, 1) + bias
    h = c = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    outputs = []
    for step in tf.unstack(gates, axis=1)[:: -1 if reverse else 1]:
        i, f, g, o = tf.split(step + tf.matmul(h, weight_hh), 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return tf.stack(outputs[:: -1 if reverse else 1], axis=1)


# Sums over time are not rounded: the cell is in float32, and so is what the steps add to a
# gradient.
def lstm_mixed(x, weight_ih, weight_hh, bias=0.0, reverse=False):
    """The whole sequence from a zero state, unrolled; the gates are i, f, g, o.

    Products and outputs are in half precision, gates and cell in float32.
    """
    gates = in_float32(tf.add, tf.tensordot(x, half(weight_ih), 1), bias)
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    c = tf.cast(h, tf.float32)
    outputs = []
    for step in tf.unstack(gates, axis=1)[:: -1 if reverse else 1]:
        step = tf.cast(step + tf.matmul(h, half(weight_hh)), tf.float32)
        i, f, g, o = tf.split(step, 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.cast(tf.sigmoid(o) * tf.tanh(c), x.dtype)
        outputs.append(h)
    return tf.stack(outputs[:: -1 if reverse else 1], axis=1)


def gru(x, weight_ih, weight_hh, bias_ih=0.0, bias_hh=0.0, reverse=False):
    """The whole sequence from a zero state, unrolled; the gates are r, z, n."""
    gates = tf.tensordot(x, weight_ih, 1) + bias_ih
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    outputs = []
    for step in tf.unstack(gates, axis=1)[:: -1 if reverse else 1]:
        xr, xz, xn = tf.split(step, 3, axis=-1)
        hr, hz, hn = tf.split(tf.matmul(h, weight_hh) + bias_hh, 3, axis=-1)
        r, z = tf.sigmoid(xr + hr), tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        h = n + z * (h - n)
        outputs.append(h)
    return tf.stack(outputs[:: -1 if reverse else 1], axis=1)


def gru_mixed(x, weight_ih, weight_hh, bias_ih=0.0, bias_hh=0.0, reverse=False):
    """The whole sequence from a zero state, unrolled; the gates are r, z, n.

    Products and outputs are in half precision, gates and state in float32.
    """
    gates = in_float32(tf.add, tf.tensordot(x, half(weight_ih), 1), bias_ih)
    h = tf.zeros((x.shape[0], weight_hh.shape[0]), tf.float32)
    outputs = []
    for step in tf.unstack(gates, axis=1)[:: -1 if reverse else 1]:
        xr, xz, xn = tf.split(tf.cast(step, tf.float32), 3, axis=-1)
        hidden = tf.matmul(tf.cast(h, x.dtype), half(weight_hh))
        hidden = tf.cast(hidden, tf.float32) + bias_hh
        hr, hz, hn = tf.split(hidden, 3, axis=-1)
        r, z = tf.sigmoid(xr + hr), tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        h = n + z * (h - n)
        outputs.append(tf.cast(h, x.dtype))
    return tf.stack(outputs[:: -1 if reverse else 1], axis=1)


def glorot_uniform(shape):
    fan_in, fan_out = (math.prod(shape[:-2]) * n for n in shape[-2:])
    limit = math.sqrt(6 / (fan_in + fan_out))
    return tf.random.uniform(shape, -limit, limit)
