# mypy: ignore-errors
"""Keras models that tests import: each has something that an import gets wrong easily.

Comments of one word behind `#` mark lines that messages have to name.
"""

import keras
import numpy as np
from keras import layers, ops


def cube():
    """As many channels as rows: axes that are exchanged would fit."""
    x = keras.Input((8, 8, 8))
    h = layers.Conv2D(8, 3, padding="same")(x)
    return keras.Model(x, layers.Dense(2)(layers.Flatten()(h)))


def text_cnn():
    x = keras.Input((11, 9))
    h = layers.Conv1D(6, 3, strides=2, padding="same", activation="relu")(x)
    h = layers.BatchNormalization()(h)
    h = layers.SeparableConv1D(4, 2)(h)
    h = layers.AveragePooling1D(2)(h)
    return keras.Model(x, layers.Flatten()(h))


def small_cnn():
    return keras.Sequential(
        [
            keras.Input((12, 10, 3)),
            layers.Conv2D(8, 3, padding="same", activation="relu", name="conv1"),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-4, name="bn1"),
            layers.MaxPooling2D(),
            layers.Conv2D(12, 3, strides=2, padding="same", name="conv2"),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(10, activation="softmax", name="fc"),
        ]
    )


def compiled():
    model = small_cnn()
    model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")
    return model


def compiled_logits():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, optimizer="sgd")
    return model


def compiled_with_settings():
    model = keras.Sequential([keras.Input((7, 6)), layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1, reduction="sum"
    )
    model.compile(loss=loss, optimizer="sgd")
    return model


def compiled_smooth():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    model.compile(loss=loss, optimizer="sgd")
    return model


def compiled_ctc():
    model = keras.Sequential([keras.Input((9, 6)), layers.Dense(4)])
    model.compile(loss=keras.losses.CTC(reduction="sum"), optimizer="sgd")
    return model


def compiled_sum_of_means():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    loss = keras.losses.MeanSquaredError(reduction="sum")
    model.compile(loss=loss, optimizer="sgd")
    return model


def compiled_without_counterpart():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    model.compile(loss="huber", optimizer="sgd")
    return model


def probabilities_without_softmax():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3, activation="sigmoid")])
    model.compile(loss="sparse_categorical_crossentropy", optimizer="sgd")
    return model


def shared():
    """One layer on two inputs, and its kernel read once more."""
    left = keras.Input((6,), name="left")
    right = keras.Input((6,), name="right")
    twice = layers.Dense(6, activation="tanh", name="twice")
    h = layers.Add()([twice(left), twice(twice(right))])
    return keras.Model([left, right], layers.Dense(2, name="out")(h))


class TiedOut(layers.Layer):
    """Logits by the transposed table."""

    def __init__(self, table, **kwargs):
        super().__init__(**kwargs)
        self.table = table

    def call(self, x):
        return ops.matmul(x, ops.transpose(self.table.embeddings))


def tied():
    table = layers.Embedding(20, 6, name="table")
    ids = keras.Input((5,), dtype="int32", name="ids")
    h = layers.LSTM(6, return_sequences=True)(table(ids))
    return keras.Model(ids, TiedOut(table, name="logits")(h))


def nested():
    inner = keras.Sequential(
        [keras.Input((8, 8, 2)), layers.Conv2D(4, 3), layers.BatchNormalization()],
        name="inner",
    )
    x = keras.Input((8, 8, 2))
    h = inner(x)
    other = keras.Model(h_in := keras.Input((6, 6, 4)), layers.Activation("gelu")(h_in))
    h = other(h)
    return keras.Model(x, layers.GlobalMaxPooling2D()(h))


def odd_names():
    x = keras.Input((4,), name='my "input"')
    h = layers.Dense(5, name='with "quotes" and, = commas')(x)
    h = layers.Dense(5, name="with spaces; [brackets] {and} \\ more\nlines")(h)
    h = layers.Dense(5, name="123")(h)
    return keras.Model(x, layers.Dense(2, name="loss")(h))


def slash_in_name():
    return keras.Sequential([layers.Dense(2, name="a/b")])  # slash


class Branch(layers.Layer):
    def call(self, x, training=None):
        if training:
            return x * 2.0  # branch
        return x


def training_branch():
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2)(Branch()(x)))


class Custom(layers.Layer):
    """Operations on variables alone, operators, and layers within."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.inner = layers.Dense(units, activation=lambda x: ops.sin(x) + x)

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), name="kernel")
        self.scale = self.add_weight(
            shape=(self.units,), name="scale", initializer="ones"
        )
        self.step = self.add_weight(
            shape=(), name="step", initializer="ones", trainable=False
        )
        self.inner.build((*shape[:-1], self.units))

    def call(self, x):
        y = ops.matmul(x, self.kernel)
        y = ops.softplus(self.scale) * y - self.scale[None, :1] / 2
        mean = ops.mean(y, axis=-1, keepdims=True)
        y = (y - mean) / ops.sqrt(ops.var(y, axis=-1, keepdims=True) + 1e-3)
        y = ops.where(y > 0, y, 0.1 * y) ** 2 + self.step * ops.abs(y)
        largest = ops.one_hot(ops.argmax(y, axis=1), self.units)
        y = y + largest * ops.prod(y, axis=1, keepdims=True)
        return self.inner(y) + ops.max(y, axis=1, keepdims=True)


def custom_layer():
    x = keras.Input((7,))
    return keras.Model(x, layers.Dense(2)(Custom(5, name="mine")(x)))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv = layers.Conv2D(4, 3)
        self.norm = layers.BatchNormalization()
        self.drop = layers.SpatialDropout2D(0.2)
        self.head = layers.Dense(3)

    def call(self, x, training=None):
        h = ops.relu(self.norm(self.conv(x), training=training))
        h = self.drop(h, training=training)
        return self.head(ops.mean(h, axis=(1, 2)))


def frozen():
    """A part that does not train: its batch norm keeps its statistics."""
    base = keras.Sequential(
        [keras.Input((8, 8, 3)), layers.Conv2D(4, 3), layers.BatchNormalization()]
    )
    base.trainable = False
    rng = np.random.default_rng(3)
    base.layers[1].set_weights(rng.uniform(0.5, 1.5, (4, 4)))
    x = keras.Input((8, 8, 3))
    h = base(x, training=False)
    h = layers.GlobalAveragePooling2D()(h)
    return keras.Model(x, layers.Dense(2, name="head")(h))


def both_directions():
    x = keras.Input((6, 5))
    h = layers.Bidirectional(layers.GRU(4, return_sequences=True))(x)
    h = layers.LayerNormalization(center=False)(h)
    h = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(h)
    h = layers.RMSNormalization()(h)
    h = layers.GRU(3, go_backwards=True, use_bias=False, return_sequences=True)(h)
    h = layers.LayerNormalization(center=False, scale=False)(h)
    return keras.Model(x, layers.Dense(2)(h))


def sequences():
    ids = keras.Input((6,), dtype="int32", name="ids")
    h = layers.Embedding(30, 8)(ids)
    h = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(h)
    h = layers.GRU(5, return_sequences=True)(h)
    h = layers.GRU(5, reset_after=False, return_sequences=True)(h)
    h = layers.SimpleRNN(5, return_sequences=True, go_backwards=True)(h)
    h = layers.LSTM(4, recurrent_activation="hard_sigmoid", unit_forget_bias=False)(h)
    return keras.Model(ids, layers.Dense(2)(h))


def states():
    x = keras.Input((5, 3))
    _, h, c = layers.LSTM(4, return_sequences=True, return_state=True)(x)
    y = layers.LSTM(4, dropout=0.2)(x, initial_state=[h, c])
    return keras.Model(x, y)


def attention():
    x = keras.Input((6, 8), name="x")
    h = layers.LayerNormalization(epsilon=1e-5)(x)
    h = layers.MultiHeadAttention(2, 4, dropout=0.2)(h, h)
    x2 = layers.Add()([x, h])
    h = layers.MultiHeadAttention(2, 3, value_dim=5, dropout=0.1)(
        x2, x2, use_causal_mask=True
    )
    h = layers.GroupNormalization(2)(layers.Add()([x2, h]))
    return keras.Model(x, layers.GlobalAveragePooling1D()(h))


def pictures():
    """Layers of pictures, with sizes that divide by nothing."""
    x = keras.Input((13, 11, 4))
    h = layers.Rescaling(1 / 3, offset=-0.5)(x)
    norm = layers.Normalization(
        mean=[0.1, 0.2, 0.3, 0.4], variance=[1.0, 2.0, 3.0, 4.0]
    )
    h = norm(h)
    h = layers.ZeroPadding2D(((1, 2), (0, 3)))(h)
    h = layers.DepthwiseConv2D(3, strides=2, depth_multiplier=2, padding="same")(h)
    h = layers.PReLU(shared_axes=[1, 2])(h)
    h = layers.SeparableConv2D(6, 3, activation="silu", padding="same")(h)
    h = layers.AveragePooling2D(2, strides=2)(h)
    h = layers.Conv2DTranspose(5, 3, strides=2, padding="same")(h)
    h = layers.Conv2DTranspose(4, 2, strides=3)(h)
    h = layers.UpSampling2D((2, 1))(h)
    h = layers.UpSampling2D(2, interpolation="bilinear")(h)
    h = layers.Cropping2D(((1, 0), (2, 3)))(h)
    h = layers.MaxPooling2D(4, strides=3, padding="same")(h)
    h = layers.GroupNormalization(4, axis=-1)(h)
    h = layers.Permute((2, 1, 3))(h)
    h = layers.Reshape((-1, 8))(h)
    h = layers.Conv1D(6, 3, padding="causal", dilation_rate=2)(h)
    h = layers.BatchNormalization()(h)
    h = layers.MaxPooling1D(3)(h)
    h = layers.Conv1DTranspose(3, 4, strides=2)(h)
    return keras.Model(x, layers.Dense(2)(layers.Flatten()(h)))


def channels_first():
    x = keras.Input((3, 8, 8))
    h = layers.Conv2D(4, 3, data_format="channels_first", padding="same")(x)
    h = layers.BatchNormalization(axis=1)(h)
    h = layers.AveragePooling2D(2, data_format="channels_first")(h)
    return keras.Model(x, layers.Flatten()(h))


def squeeze_excite():
    x = keras.Input((9, 9, 8))
    h = layers.Conv2D(8, 1, activation="swish")(x)
    s = layers.GlobalAveragePooling2D(keepdims=True)(h)
    s = layers.Conv2D(2, 1, activation="relu")(s)
    s = layers.Conv2D(8, 1, activation="hard_sigmoid")(s)
    h = layers.Multiply()([h, s])
    t = layers.Reshape((1, 1, 8))(layers.GlobalAveragePooling2D()(h))
    h = layers.Concatenate()([h, t + h])
    return keras.Model(x, layers.GlobalAveragePooling2D()(h))


def flatten_order():
    """What lies between Flatten and Dense, and a Flatten that is read twice."""
    x = keras.Input((4, 3, 2))
    h = layers.Flatten()(layers.Conv2D(5, 2, padding="same")(x))
    h = layers.Dropout(0.1)(ops.tanh(h))
    a = layers.Dense(3)(h)
    b = layers.Dense(3)(layers.BatchNormalization()(h))
    c = layers.Reshape((4, 15))(h)
    return keras.Model(x, layers.Concatenate()([a, b, c[:, 1, 2:14:4]]))


def mixed():
    keras.mixed_precision.set_global_policy("mixed_float16")
    x = keras.Input((4,))
    h = layers.Dense(5)(x)
    h = ops.cast(h, "float32") / 3
    h = layers.Dense(2, dtype="float32")(h)
    return keras.Model(x, h)


def lambda_layer():
    x = keras.Input((4, 3))
    h = layers.Lambda(lambda v: ops.square(v) + ops.flip(v, axis=1))(x)
    return keras.Model(x, layers.TimeDistributed(layers.Dense(2))(h))


def two_outputs():
    x = keras.Input((4,))
    return keras.Model(x, {"a": layers.Dense(2)(x), "b": layers.Dense(3)(x)})


def several():
    """Outputs of unlike shapes, two of which are one without dropout."""
    x = keras.Input((6, 5, 3))
    h = layers.Conv2D(4, 3)(x)
    rows = layers.GlobalAveragePooling2D()(h)
    outputs = {"masks": layers.Conv2D(2, 1)(h), "best": ops.max(rows, -1)}
    outputs["scores"] = layers.Dropout(0.2)(rows)
    outputs["signal"] = layers.Conv1D(2, 3)(x[:, 0])
    return keras.Model(x, {**outputs, "rows": rows, "again": rows})


def steps():
    """Layers at each step, states of both directions, attention that drops."""
    x = keras.Input((3, 6, 5, 2))
    each = [layers.Conv2D(4, 3), layers.BatchNormalization(), layers.Flatten()]
    h = layers.TimeDistributed(keras.Sequential(each))(x)
    both = layers.Bidirectional(layers.GRU(4, return_sequences=True, return_state=True))
    h, forth, back = both(h)
    h = layers.Attention(use_scale=True, dropout=0.2)([h, h])
    h = layers.RMSNormalization(axis=[1, 2])(h)
    h = layers.TimeDistributed(layers.Conv1D(2, 3))(h[..., None])
    return keras.Model(x, layers.Concatenate()([layers.Flatten()(h), forth, back]))


def too_many_steps():
    x = keras.Input((65, 6, 3))
    return keras.Model(x, layers.TimeDistributed(layers.Conv1D(2, 3))(x))  # steps


def fixed_batch():
    x = keras.Input(batch_shape=(5, 4))
    return keras.Model(x, layers.Dense(2)(layers.BatchNormalization()(x)))


def open_sizes():
    x = keras.Input((None, 3), name="x")
    return keras.Model(x, layers.GlobalAveragePooling1D()(layers.Dense(4)(x)))


def penalised():
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2, kernel_regularizer="l2")(x))


def picture_output():
    x = keras.Input((6, 6, 2))
    return keras.Model(x, layers.Conv2D(3, 3, padding="same")(x))


def one_model():
    return keras.Sequential([keras.Input((4,)), layers.Dense(2)])


MODEL = one_model()


class Block(layers.Layer):
    """A mask, repeated weights, and layers whose mode the call does not hand on."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(2, 3, dropout=0.1)
        self.norm, self.drop = layers.BatchNormalization(), layers.Dropout(0.2)
        self.rate = 0.5  # no dropout

    def build(self, x_shape, mask_of_pairs_shape):
        self.first = self.add_weight(shape=(1, 1, x_shape[-1]), name="first")

    def call(self, x, mask_of_pairs):
        first = ops.broadcast_to(self.first, (ops.shape(x)[0], 1, x.shape[-1]))
        x = ops.concatenate([self.drop(first), x], axis=1)
        x = x + self.attention(x, x, attention_mask=mask_of_pairs) * self.rate
        return keras.activations.relu(self.norm(x))


class Autoencoder(layers.Layer):
    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder

    def call(self, x):
        return ops.matmul(x, ops.transpose(self.encoder.kernel))


class OfLayers(keras.Model):
    """A layer of layers, which Keras has never called by itself."""

    def __init__(self):
        super().__init__()
        self.custom, self.branch = Custom(5), HoldsCustom()

    def call(self, x):
        return self.custom(x) + self.branch(x)


class HoldsCustom(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.custom, self.drop = Custom(5), layers.Dropout(0.2)

    def call(self, x):
        return self.drop(self.custom(x))


def rows_and_masks():
    ids = keras.Input((4,), name="ids")  # floats, as a table takes them
    pairs = keras.Input((5, 5), dtype="bool", name="pairs")
    h = Block(name="block")(layers.Embedding(9, 6, name="table")(ids), pairs)
    still = layers.Dense(6, name="still")(h)
    encoder = layers.Dense(3, use_bias=False, name="encoder")
    h = Autoencoder(encoder)(encoder(h + ops.stop_gradient(still)))
    h = layers.EinsumDense(
        "abc,cde->abde", output_shape=(None, 2, 4), activation="relu"
    )(h)
    h = ops.normalize(h, axis=-1) + ops.normalize(0.01 * h + 0.01, epsilon=0.1)
    return keras.Model([ids, pairs], layers.Flatten()(h))


def placed():
    x, ids = keras.Input((6, 8)), keras.Input((4,), dtype="int32")
    h = layers.Dense(8)(x)
    rows = ops.take_along_axis(h, ids[..., None], axis=1)
    apart = ops.take_along_axis(rows, ids[..., None], axis=2)
    return keras.Model([x, ids], rows * apart)


def shaped_attention():
    x = keras.Input((5, 6))
    return keras.Model(x, layers.MultiHeadAttention(2, 3, output_shape=(2, 4))(x, x))


def nothing_trains():
    model = one_model()
    model.trainable = False
    return model


# ---- losses, masks and randomness that no workload has


def softmax_twice():
    both = layers.Dense(6, activation="softmax", name="both")
    model = keras.Model(x := keras.Input((6,)), both(both(x)))
    model.compile(loss="sparse_categorical_crossentropy")
    return model


def mse(y_true, y_pred):
    return ops.mean(ops.abs(y_true - y_pred) ** 3)


def loss_of_my_own():
    model = one_model()
    model.compile(loss=mse)
    return model


def loss_with_a_weight():
    model = one_model()
    model.compile(loss="mse", loss_weights=[0.25])
    return model


def loss_of_another_axis():
    model = keras.Sequential([keras.Input((6,)), layers.Reshape((3, 2))])
    loss = keras.losses.CategoricalCrossentropy(axis=1, from_logits=True)
    model.compile(loss=loss)
    return model


class OwnStep(keras.Model):
    def train_step(self, data):
        return {}


def step_of_my_own():
    x = keras.Input((4,))
    return OwnStep(x, layers.Dense(2)(x))


def constrained():
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2, kernel_constraint="non_neg")(x))


class Marks(layers.Layer):
    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, x):
        return x * 1.0

    def compute_mask(self, x, previous=None):
        return ops.less(x[..., 0], 5.0)


def marked():
    x = keras.Input((5, 3))
    return keras.Model(x, layers.GlobalAveragePooling1D()(Marks()(x)))  # marked


def marked_output():
    x = keras.Input((5, 3))
    return keras.Model(x, layers.Dense(2)(Marks()(x)))


def mask_given():
    x = keras.Input((5,))
    return keras.Model(x, layers.Softmax()(x, mask=x < 5.0))  # given


class Switches(layers.Layer):
    def __init__(self, what):
        super().__init__()
        self.what, self.drop = what, layers.Dropout(0.5)
        self.seed = keras.random.SeedGenerator(1)

    def call(self, x):
        if self.what == "always":
            return self.drop(x, training=True)  # always
        if self.what == "path":
            keep = keras.random.uniform((ops.shape(x)[0], 1), seed=self.seed)  # path
            return x * ops.floor(0.5 + keep)
        return ops.cond(ops.max(x) > 9.0, lambda: x, lambda: -x)  # cond


def always_drops():
    return keras.Model(x := keras.Input((4,)), Switches("always")(x))


def drops_paths():
    return keras.Model(x := keras.Input((4,)), Switches("path")(x))


def runs_functions():
    return keras.Model(x := keras.Input((4,)), Switches("cond")(x))


def bytes_of_pictures():
    x = keras.Input((4, 4, 3), dtype="uint8")
    return keras.Model(x, layers.Rescaling(1 / 255)(x))  # bytes


def rows_built_in():
    x = keras.Input(batch_shape=(5, 3))
    return keras.Model(x, layers.Dense(2)(x * np.ones((5, 3))))  # rows


# ---- refused


def masked():
    ids = keras.Input((5,), dtype="int32")
    h = layers.Embedding(9, 3, mask_zero=True)(ids)  # mask
    return keras.Model(ids, layers.LSTM(2)(h))


def masking():
    x = keras.Input((5, 3))
    return keras.Model(x, layers.LSTM(2)(layers.Masking()(x)))  # masking


def stateful():
    x = keras.Input(batch_shape=(4, 5, 3))
    return keras.Model(x, layers.LSTM(2, stateful=True)(x))  # stateful


def augmented():
    x = keras.Input((8, 8, 3))
    h = layers.RandomFlip()(x)  # flip
    h = layers.GaussianNoise(0.1)(h)  # noise
    return keras.Model(x, layers.Flatten()(h))


class Foreign(layers.Layer):
    def call(self, x):
        return np.sin(x)  # foreign


def foreign():
    x = keras.Input((4,))
    made = Foreign()
    made.compute_output_spec = lambda v: keras.KerasTensor(v.shape, dtype=v.dtype)
    return keras.Model(x, made(x))


class Counts(layers.Layer):
    def build(self, shape):
        self.calls = self.add_weight(shape=(), name="calls", trainable=False)

    def call(self, x):
        self.calls.assign(self.calls + 1.0)  # assign
        return x * 1.0


def counts():
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2)(Counts()(x)))


class Sorts(layers.Layer):
    def call(self, x):
        return ops.sort(x, axis=-1)  # sort


def several_refused():
    x = keras.Input((6,))
    h = Sorts()(x)
    h = ops.fft((h, h))[0]  # fft
    return keras.Model(x, layers.Dense(2)(h))


class Detached(layers.Layer):
    def call(self, x):
        return x + ops.stop_gradient(ops.square(x))  # stop


def detached():
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2)(Detached()(layers.Dense(4)(x))))


def batch_mixing():
    x = keras.Input((4,))
    return keras.Model(x, x - ops.mean(x, axis=0, keepdims=True))  # batch


def unbuilt():
    return keras.Sequential([layers.Dense(3), layers.Dense(2)])


def no_model():
    return layers.Dense(3)


def raises():
    layers.Dense(-1)  # raises
    return None


def needs_arguments(width):
    return keras.Sequential([keras.Input((width,)), layers.Dense(2)])


class Scaled(keras.Model):
    """Several inputs, one with statistics that the layer is given; built by its call."""

    def __init__(self):
        super().__init__()
        self.norm = layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0])
        self.tables = [layers.Embedding(7, 3), layers.Embedding(5, 2)]
        self.out = layers.Dense(2)

    def call(self, numbers, kinds=None, training=False):
        parts = [table(kinds[:, i]) for i, table in enumerate(self.tables)]
        return self.out(ops.concatenate([self.norm(numbers), *parts], axis=-1))


class Conditioned(keras.Model):
    """Takes a dictionary."""

    def __init__(self):
        super().__init__()
        self.conv, self.table = layers.Conv2D(3, 3), layers.Embedding(4, 3)

    def call(self, inputs):
        gate = ops.sigmoid(self.table(inputs["kind"]))[:, None, None, :]
        return ops.mean(self.conv(inputs["picture"]) * gate, axis=(1, 2))
