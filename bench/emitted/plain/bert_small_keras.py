"""The encoder of recipes/bert_small.toml in Keras, as one would type it."""

# mypy: ignore-errors

from keras_loop import keras, load_data, train_loop
from pairing.bursts import Bursts
from safetensors.numpy import load_file

if keras.__name__ == "tf_keras":
    import tensorflow as ops
else:
    from keras import ops

layers = keras.layers
WORDS, POSITIONS, TOKENS, WIDTH, HEADS, INNER = 500, 32, 24, 64, 4, 256
LAYERS = 2
DROPOUT = 0.1


class Positions(layers.Layer):
    def build(self, shape):
        self.table = self.add_weight(shape=(POSITIONS, WIDTH), name="table")
        self.built = True

    def call(self, x):
        return x + self.table[:TOKENS]


class Decoder(layers.Layer):
    """With the table of the words as its weight."""

    def __init__(self, words, **options):
        super().__init__(**options)
        self.words = words

    def build(self, shape):
        self.bias = self.add_weight(shape=(WORDS,), initializer="zeros", name="bias")
        self.built = True

    def call(self, x):
        return ops.matmul(x, ops.transpose(self.words.embeddings)) + self.bias


def norm(x, name):
    return layers.LayerNormalization(epsilon=1e-12, name=name)(x)


def block(x, mask, name):
    attention = layers.MultiHeadAttention(
        HEADS, WIDTH // HEADS, name=name + "_attention"
    )
    h = layers.Dropout(DROPOUT)(attention(x, x, attention_mask=mask))
    x = norm(layers.Add()([x, h]), name + "_attention_norm")
    h = layers.Dense(INNER, activation="gelu", name=name + "_intermediate")(x)
    h = layers.Dropout(DROPOUT)(layers.Dense(WIDTH, name=name + "_output")(h))
    return norm(layers.Add()([x, h]), name + "_norm")


def make_model():
    tokens = keras.Input((TOKENS,), dtype="int32")
    types = keras.Input((TOKENS,), dtype="int32")
    last = keras.Input((1,), dtype="int32")
    places = ops.range(TOKENS) if hasattr(ops, "range") else ops.arange(TOKENS)
    mask = ops.less_equal(places, last)[:, None, :]
    word = layers.Embedding(WORDS, WIDTH, name="word")
    token_type = layers.Embedding(2, WIDTH, name="token_type")
    x = layers.Add()([word(tokens), token_type(types)])
    x = norm(Positions(name="position")(x), "embeddings_norm")
    x = layers.Dropout(DROPOUT)(x)
    for n in range(LAYERS):
        x = block(x, mask, f"encoder_{n}")
    x = layers.Dense(WIDTH, activation="gelu", name="head_dense")(x)
    logits = Decoder(word, name="decoder")(norm(x, "head_norm"))
    return keras.Model([tokens, types, last], logits)


def assign(model, path):
    w = load_file(path)

    def put(layer, *arrays):
        model.get_layer(layer).set_weights(arrays)

    def dense(layer, name):
        put(layer, w[name + ".weight"].T, w[name + ".bias"])

    def scale(layer, name):
        put(layer, w[name + ".weight"], w[name + ".bias"])

    put("word", w["embeddings.word.weight"])
    put("token_type", w["embeddings.token_type.weight"])
    put("position", w["embeddings.position.weight"])
    scale("embeddings_norm", "embeddings.norm")
    for n in range(LAYERS):
        layer, name = f"encoder_{n}", f"encoder.{n}"
        heads = []
        for part in ("query", "key", "value"):
            part = f"{name}.attention.{part}"
            heads.append(w[part + ".weight"].T.reshape(WIDTH, HEADS, -1))
            heads.append(w[part + ".bias"].reshape(HEADS, -1))
        out = w[name + ".attention.output.weight"].T.reshape(HEADS, -1, WIDTH)
        bias = w[name + ".attention.output.bias"]
        put(layer + "_attention", *heads, out, bias)
        scale(layer + "_attention_norm", name + ".attention.norm")
        dense(layer + "_intermediate", name + ".intermediate")
        dense(layer + "_output", name + ".output")
        scale(layer + "_norm", name + ".norm")
    dense("head_dense", "head.dense")
    scale("head_norm", "head.norm")
    model.get_layer("decoder").bias.assign(w["decoder_bias"])


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = make_model()
    assign(model, weights)
    optimizer = keras.optimizers.AdamW(1e-4, epsilon=1e-6, weight_decay=0.01)
    x, y = load_data(data, ["tokens", "token_types", "last"], "labels", 16)
    x[2] = x[2][:, None]
    train_loop(bursts, model, optimizer, x, y, 16)
