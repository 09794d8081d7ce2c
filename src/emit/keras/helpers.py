"""What Keras scripts call (emit/helpers.h); ops is translated for Keras 2 (dialect.h)."""

import keras
import tensorflow as tf
from keras import layers, ops
from numpy_helpers import resize_matrix


class BatchNormalizationOfFixedScale(layers.BatchNormalization):
    """gamma and beta stay what they are; the statistics move."""

    def build(self, input_shape):
        super().build(input_shape)
        self.gamma.trainable = self.beta.trainable = False


# Keras's own layer has no groups, and dilation only where the backend has it.
class ConvTranspose(layers.Layer):
    """A transposed convolution with groups and dilation."""

    def __init__(
        self,
        filters,
        kernel_size,
        strides,
        output_padding,
        dilation,
        groups,
        use_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.filters, self.kernel_size, self.strides = filters, kernel_size, strides
        self.output_padding, self.dilation = output_padding, dilation
        self.groups, self.use_bias = groups, use_bias

    def build(self, input_shape):
        shape = (*self.kernel_size, self.filters // self.groups, input_shape[-1])
        self.kernel = self.add_weight(shape=shape, name="kernel")
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(self.filters,), initializer="zeros", name="bias"
            )

    def call(self, x):
        kernel = self.kernel
        for axis, step in enumerate(self.dilation):  # zeros between the kernel's places
            *before, n = kernel.shape[: axis + 1]
            after = kernel.shape[axis + 1 :]
            places = [[0, 0]] * (len(kernel.shape) + 1)
            places[axis + 1] = [0, step - 1]
            kernel = ops.pad(ops.expand_dims(kernel, axis + 1), places)
            kernel = ops.reshape(kernel, (*before, n * step, *after))
            kernel = kernel[(slice(None),) * axis + (slice(n * step - step + 1),)]
        xs, kernels = ops.split(x, self.groups, -1), ops.split(kernel, self.groups, -1)
        options = self.strides, self.output_padding
        y = [transposed(a, k, *options) for a, k in zip(xs, kernels, strict=True)]
        y = ops.concatenate(y, -1)
        return y + self.bias if self.use_bias else y

    def compute_output_shape(self, input_shape):
        sizes = [
            (n - 1) * s + d * (k - 1) + 1 + p
            for n, s, d, k, p in zip(
                input_shape[1:-1],
                self.strides,
                self.dilation,
                self.kernel_size,
                self.output_padding,
                strict=True,
            )
        ]
        return (input_shape[0], *sizes, self.filters)


class Full(layers.Layer):
    """A number, repeated to these sizes, for each row of the input."""

    def __init__(self, sizes, number, **kwargs):
        super().__init__(**kwargs)
        self.sizes, self.number = tuple(sizes), number

    def call(self, x):
        shape = (ops.shape(x)[0], *self.sizes)
        return ops.full(shape, self.number, dtype=x.dtype)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *self.sizes)


class Expand(layers.Layer):
    """Repeats a value to these sizes, with as many rows as the second input.

    A size None is the value's own.
    """

    def __init__(self, sizes, **kwargs):
        super().__init__(**kwargs)
        self.sizes = tuple(sizes)

    def call(self, inputs):
        x, rows = inputs
        own = ops.shape(x)[1:]
        sizes = [
            old if new is None else new
            for old, new in zip(own, self.sizes, strict=True)
        ]
        return ops.broadcast_to(x, (ops.shape(rows)[0], *sizes))

    def compute_output_shape(self, input_shape):
        return (input_shape[1][0], *self.sizes)


class ScatterAdd(layers.Layer):
    """Adds up what goes to the same place, for each row of the axes before."""

    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        self.size = size

    def call(self, inputs):
        values, places = inputs
        tail = values.shape[len(places.shape) :]
        ids = ops.cast(ops.reshape(places, (-1, places.shape[-1])), "int32")
        rows = ops.shape(ids)[0]
        starts = self.size * ops.arange(rows, dtype="int32")
        ids = ops.reshape(ids + starts[:, None], (-1, 1))
        zeros = ops.zeros((rows * self.size, *tail), values.dtype)
        values = ops.reshape(values, (-1, *tail))
        sums = ops.scatter_update(zeros, ids, values, reduction="add")
        return ops.reshape(sums, (-1, *places.shape[1:-1], self.size, *tail))

    def compute_output_shape(self, input_shape):
        values, places = input_shape
        return (*places[:-1], self.size, *values[len(places) :])


class GRUCell(layers.Layer):
    """As layers.GRUCell, with the gates r, z, n and two biases of their own."""

    def __init__(self, units, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = self.output_size = units
        self.use_bias = use_bias

    def build(self, input_shape):
        gates = 3 * self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], gates), initializer="glorot_uniform", name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, gates), initializer="orthogonal", name="recurrent_kernel"
        )
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(gates,), initializer="zeros", name="bias"
            )
            self.recurrent_bias = self.add_weight(
                shape=(gates,), initializer="zeros", name="recurrent_bias"
            )

    def call(self, x, states):
        h = states[0]
        from_x = ops.matmul(x, self.kernel)
        from_h = ops.matmul(h, self.recurrent_kernel)
        if self.use_bias:
            from_x, from_h = from_x + self.bias, from_h + self.recurrent_bias
        xr, xz, xn = ops.split(from_x, 3, -1)
        hr, hz, hn = ops.split(from_h, 3, -1)
        r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
        n = ops.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, [h]


class Parameter(layers.Layer):
    """Weights that are a value of the model by themselves; the input is not used."""

    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        self.shape = shape

    def build(self, input_shape):
        self.value = self.add_weight(
            shape=self.shape, initializer="uniform", name="value"
        )

    def call(self, x):
        return ops.copy(self.value)

    def compute_output_shape(self, input_shape):
        return self.shape


class CachedAttention(layers.Layer):
    """Attention to the keys and values of all places so far, which the layer keeps."""

    def __init__(self, places, window=0, **kwargs):
        super().__init__(**kwargs)
        self.places = places
        self.window = window

    def build(self, input_shape):
        rows, _, heads, width = input_shape[1]
        shape = (rows, self.places, heads, width)
        # Keras on torch assigns to the copy that autocast makes.
        options = {"initializer": "zeros", "trainable": False, "autocast": False}
        options["dtype"] = self.compute_dtype
        self.keys = self.add_weight(shape=shape, name="keys", **options)
        self.values = self.add_weight(shape=shape, name="values", **options)

    def call(self, inputs):
        q, k, v, positions = inputs
        zero = ops.zeros_like(positions[0])
        start = (zero, positions[0], zero, zero)
        for cache, new in ((self.keys, k), (self.values, v)):
            held = ops.convert_to_tensor(cache)
            cache.assign(ops.slice_update(held, start, new))
        rows, heads, width = q.shape[0], q.shape[2], q.shape[3]
        grouped = (rows, -1, k.shape[2], heads // k.shape[2], width)
        scores = ops.einsum("ntgrd,nsgd->ngrts", ops.reshape(q, grouped), self.keys)
        scores = scores / ops.sqrt(ops.cast(width, scores.dtype))
        places, positions = ops.arange(self.places, dtype="int32"), positions[:, None]
        seen = places <= positions
        if self.window > 0:
            seen = ops.logical_and(seen, places > positions - self.window)
        weights = ops.softmax(ops.where(seen, scores, float("-inf")))
        x = ops.einsum("ngrts,nsgd->ntgrd", weights, self.values)
        return ops.reshape(x, (rows, -1, heads, width))

    def compute_output_shape(self, input_shape):
        return input_shape[0]


# Places come first: TensorFlow writes the new ones of a variable in place.
class CachedAttention_keras2(layers.Layer):
    """Attention to the keys and values of all places so far, which the layer keeps."""

    def __init__(self, places, window=0, **kwargs):
        super().__init__(**kwargs)
        self.places = places
        self.window = window

    def build(self, input_shape):
        rows, _, heads, width = input_shape[1]
        shape = (self.places, rows, heads, width)
        options = {"initializer": "zeros", "trainable": False}
        options["dtype"] = self.compute_dtype
        self.keys = self.add_weight(shape=shape, name="keys", **options)
        self.values = self.add_weight(shape=shape, name="values", **options)

    def call(self, inputs):
        q, k, v, positions = inputs
        for cache, new in ((self.keys, k), (self.values, v)):
            new = tf.transpose(new, (1, 0, 2, 3))
            cache.scatter_update(tf.IndexedSlices(new, positions))
        rows, heads, width = q.shape[0], q.shape[2], q.shape[3]
        grouped = (rows, -1, k.shape[2], heads // k.shape[2], width)
        scores = tf.einsum("ntgrd,sngd->ngrts", tf.reshape(q, grouped), self.keys)
        places, positions = tf.range(self.places), positions[:, None]
        seen = places <= positions
        if self.window > 0:
            seen &= places > positions - self.window
        scores = tf.where(seen, scores * width**-0.5, float("-inf"))
        x = tf.einsum("ngrts,sngd->ntgrd", tf.nn.softmax(scores), self.values)
        return tf.reshape(x, (rows, -1, heads, width))


class PaddedEmbedding(layers.Embedding):
    """An embedding whose gradient leaves out the row that pads."""

    def __init__(self, rows, width, padding, **kwargs):
        super().__init__(rows, width, **kwargs)
        self.padding = padding

    def call(self, ids):
        rows = super().call(ids)
        pads = ops.expand_dims(ops.equal(ids, self.padding), -1)
        return ops.where(pads, ops.stop_gradient(rows), rows)


class PositionEmbedding(layers.Layer):
    """Adds a trained vector to each place of a sequence."""

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.rows = rows

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            shape=(self.rows, input_shape[-1]), initializer="uniform", name="embeddings"
        )

    def call(self, x):
        return x + self.embeddings[: x.shape[1]]

    def compute_output_shape(self, input_shape):
        return input_shape


class RMSNormalization(layers.Layer):
    """Divides by the root mean square over the last axes."""

    def __init__(self, axis, epsilon, **kwargs):
        super().__init__(**kwargs)
        self.axis, self.epsilon = axis, epsilon

    def build(self, input_shape):
        shape = [input_shape[axis] for axis in self.axis]
        self.scale = self.add_weight(shape=shape, initializer="ones", name="scale")

    def call(self, x):
        square = tf.reduce_mean(x * x, self.axis, keepdims=True)
        return x * tf.math.rsqrt(square + self.epsilon) * self.scale


class WeightOfDense(layers.Layer):
    """The weight of a dense layer as a value, O,I; the input is not used."""

    def __init__(self, owner, **kwargs):
        super().__init__(**kwargs)
        self.owner = owner

    def call(self, x):
        return ops.transpose(self.owner.kernel)

    def compute_output_shape(self, input_shape):
        return self.owner.kernel.shape[::-1]


# ops.dot_product_attention is jax.nn's on that backend.
def attention(q, k, v, mask=None, is_causal=False, rate=None):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scale = ops.rsqrt(ops.cast(q.shape[-1], q.dtype))
    scores = ops.einsum("nthd,nshd->nhts", q, k) * scale
    if is_causal:
        seen = ops.tril(ops.ones((q.shape[1], k.shape[1]), dtype="bool"))
        scores = ops.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = ops.where(mask, scores, float("-inf"))
    weights = ops.softmax(scores)
    if rate is not None:
        weights = layers.Dropout(rate)(weights)
    return ops.einsum("nhts,nshd->nthd", weights, v)


# In float16 jax.nn's has no kernel on a CPU.
def attention_mixed(q, k, v, mask=None, is_causal=False, rate=None):
    """Products are in half precision, scores and softmax in float32."""
    scores = ops.cast(ops.einsum("nthd,nshd->nhts", q, k), "float32")
    scores = scores * q.shape[-1] ** -0.5
    if is_causal:
        seen = ops.tril(ops.ones((q.shape[1], k.shape[1]), dtype="bool"))
        scores = ops.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = ops.where(mask, scores, float("-inf"))
    weights = ops.softmax(scores)
    if rate is not None:
        weights = layers.Dropout(rate)(weights)
    return ops.einsum("nhts,nshd->nthd", ops.cast(weights, v.dtype), v)


# Keras 2 has attention as layers only, with weights of their own or without the scale.
def attention_keras2(q, k, v, mask=None, is_causal=False, rate=None):
    """Scaled dot-product attention over N, tokens, heads, width."""
    scores = tf.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    if is_causal:
        seen = tf.ones((q.shape[1], k.shape[1]), dtype="bool")
        seen = tf.linalg.band_part(seen, -1, 0)
        scores = tf.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = tf.where(mask, scores, float("-inf"))
    weights = tf.nn.softmax(scores)
    if rate is not None:
        weights = layers.Dropout(rate)(weights)
    return tf.einsum("nhts,nshd->nthd", weights, v)


def average_pool(x, pool_size, strides, padding):
    """Averages over windows; Keras has no padding that does not count."""
    padding = ((0, 0), *padding, (0, 0))
    ones = ops.pad(ops.ones((1, *x.shape[1:-1], 1)), padding)
    share = ops.average_pool(ones, pool_size, strides, padding="valid")
    x = ops.pad(x, padding)
    return ops.average_pool(x, pool_size, strides, padding="valid") / share


def average_pool_keras2(x, pool_size, strides, padding):
    """Averages over windows; Keras has no padding that does not count."""
    padding = ((0, 0), *padding, (0, 0))
    ones = ops.pad(tf.ones((1, *x.shape[1:-1], 1), x.dtype), padding)
    share = tf.nn.avg_pool(ones, pool_size, strides, padding="VALID")
    x = ops.pad(x, padding)
    return tf.nn.avg_pool(x, pool_size, strides, padding="VALID") / share


def average_pool3d(x, pool_size, strides, padding):
    """The mean over the part of each window that lies inside."""
    padding = ((0, 0), *padding, (0, 0))
    ones = ops.pad(ops.ones((1, *x.shape[1:-1], 1), x.dtype), padding)
    share = pool3d(ops.average_pool, ones, pool_size, strides)
    x = ops.pad(x, padding)
    return pool3d(ops.average_pool, x, pool_size, strides) / share


def scatter_add(values, places, size):
    """Adds up what goes to the same place, for each row of the axes before."""
    ids = tf.reshape(places, (-1, places.shape[-1]))
    rows = tf.shape(ids, ids.dtype)[0]
    ids = tf.reshape(ids + size * tf.range(rows)[:, None], tf.shape(places))
    sums = tf.math.unsorted_segment_sum(values, ids, size * rows)
    axes = (*places.shape[1:-1], size, *values.shape[len(places.shape) :])
    return tf.reshape(sums, (-1, *axes))


def elu(x, alpha):
    return tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0)))


def hard_sigmoid(x, alpha, beta):
    return ops.clip(alpha * x + beta, 0, 1)


def hard_swish(x):
    return x * tf.nn.relu6(x + 3) / 6


def leaky_relu(x, slope):
    """Exact also in float64, where TensorFlow's own has its slope rounded to float32."""
    return ops.where(x > 0, x, slope * x)


def local_response_norm(x, size, alpha, beta, k):
    """Divides by a sum of squares over neighbouring channels of N, H, W, C."""
    sides = (size // 2, (size - 1) // 2)
    squares = ops.pad(ops.square(x), ((0, 0), (0, 0), (0, 0), sides))
    total = sum(squares[..., i : i + x.shape[-1]] for i in range(size))
    return x / ops.power(k + alpha * total, beta)


def local_response_norm_mixed(x, size, alpha, beta, k):
    """Divides by a sum of squares over neighbouring channels of N, H, W, C.

    In float32; x comes and goes in half precision.
    """
    full = ops.cast(x, "float32")
    sides = (size // 2, (size - 1) // 2)
    squares = ops.pad(ops.square(full), ((0, 0), (0, 0), (0, 0), sides))
    total = sum(squares[..., i : i + x.shape[-1]] for i in range(size))
    return ops.cast(full / ops.power(k + alpha * total, beta), x.dtype)


def mish(x):
    return x * ops.tanh(ops.softplus(x))


def padding_mask(last, keys):
    """True up to the last token of each row: N, 1, 1, keys."""
    return ops.less_equal(ops.arange(keys), ops.expand_dims(last, (1, 2, 3)))


def padding_mask_keras2(last, keys):
    """True up to the last token of each row: N, 1, 1, keys."""
    return tf.less_equal(tf.range(keys), tf.reshape(last, (-1, 1, 1, 1)))


def window_mask(keys, window):
    """True for the last keys up to the query, as many as the window has: 1, 1, keys, keys."""
    ones = ops.ones((1, 1, keys, keys), dtype="bool")
    return ops.triu(ops.tril(ones), 1 - window)


def window_mask_keras2(keys, window):
    """True for the last keys up to the query, as many as the window has: 1, 1, keys, keys."""
    ones = tf.ones((1, 1, keys, keys), dtype="bool")
    return tf.linalg.band_part(ones, window - 1, 0)


def pool3d(pool, x, pool_size, strides):
    """Over H and W, then over D: TensorFlow's pools along three axes have no float64."""
    d, h, w, c = x.shape[1:]
    x = ops.reshape(x, (-1, h, w, c))
    x = pool(x, pool_size[1:], strides[1:], padding="valid")
    h, w = x.shape[1:3]
    x = ops.reshape(x, (-1, d, h * w, c))
    x = pool(x, (pool_size[0], 1), (strides[0], 1), padding="valid")
    return ops.reshape(x, (-1, x.shape[1], h, w, c))


def pool3d_keras2(pool, x, pool_size, strides):
    """Over H and W, then over D: TensorFlow's pools along three axes have no float64."""
    d, h, w, c = x.shape[1:]
    x = tf.reshape(x, (-1, h, w, c))
    x = pool(x, pool_size[1:], strides[1:], padding="VALID")
    h, w = x.shape[1:3]
    x = tf.reshape(x, (-1, d, h * w, c))
    x = pool(x, (pool_size[0], 1), (strides[0], 1), padding="VALID")
    return tf.reshape(x, (-1, x.shape[1], h, w, c))


def resize(x, size, mode, coordinates):
    """By a product along each axis; ops.image.resize reads other places."""
    for axis, new in enumerate(size, 1):
        matrix = resize_matrix(x.shape[axis], new, mode, coordinates)
        matrix = ops.convert_to_tensor(matrix, x.dtype)
        x = ops.tensordot(x, matrix, ([axis], [0]))
        last = len(x.shape) - 1
        x = ops.transpose(x, (*range(axis), last, *range(axis, last)))
    return x


def resize_keras2(x, size, mode, coordinates):
    """By a product along each axis; tf.image.resize reads other places."""
    for axis, new in enumerate(size, 1):
        matrix = resize_matrix(x.shape[axis], new, mode, coordinates)
        x = tf.tensordot(x, tf.constant(matrix, x.dtype), (axis, 0))
        last = x.shape.rank - 1
        x = tf.transpose(x, (*range(axis), last, *range(axis, last)))
    return x


def resize_bilinear(x, size):
    """ops.image.resize, which TensorFlow computes in float32; float64 by products."""
    if keras.backend.standardize_dtype(x.dtype) == "float64":
        return resize(x, size, mode="linear", coordinates="half_pixel")
    return ops.image.resize(
        x, size, interpolation="bilinear", data_format="channels_last"
    )


def resize_bilinear_keras2(x, size):
    """tf.image.resize, which computes in float32; float64 by products."""
    if x.dtype == tf.float64:
        return resize(x, size, mode="linear", coordinates="half_pixel")
    return tf.cast(tf.image.resize(x, size), x.dtype)


def rms_norm(x, axes, epsilon):
    square = ops.mean(ops.square(x), axes, keepdims=True)
    return x * ops.rsqrt(square + epsilon)


def rms_norm_keras2(x, axes, epsilon):
    square = tf.reduce_mean(x * x, axes, keepdims=True)
    return x * tf.math.rsqrt(square + epsilon)


def transposed(x, kernel, strides, output_padding):
    options = dict(padding="valid", output_padding=output_padding)
    return ops.conv_transpose(x, kernel, strides, **options)


def transposed_keras2(x, kernel, strides, output_padding):
    sizes = zip(x.shape[1:-1], strides, kernel.shape, output_padding, strict=False)
    sizes = [(n - 1) * step + k + more for n, step, k, more in sizes]
    shape = (tf.shape(x)[0], *sizes, kernel.shape[-2])
    return tf.nn.conv_transpose(x, kernel, shape, strides, "VALID")
