"""The language model of recipes/lstm_lm_small.toml in Keras, as one would type it."""

# mypy: ignore-errors

from keras_loop import keras, load_data, train_loop
from pairing.bursts import Bursts
from safetensors.numpy import load_file

layers = keras.layers
DROPOUT = 0.5


def make_model():
    return keras.Sequential(
        [
            keras.Input((20,), dtype="int32"),
            layers.Embedding(500, 64, name="tokens"),
            layers.Dropout(DROPOUT),
            layers.LSTM(64, return_sequences=True, name="lstm1"),
            layers.Dropout(DROPOUT),
            layers.LSTM(64, return_sequences=True, name="lstm2"),
            layers.Dropout(DROPOUT),
            layers.Dense(500, name="decoder"),
        ]
    )


def assign(model, path):
    w = load_file(path)
    model.get_layer("tokens").set_weights([w["tokens.weight"]])
    for name in ("lstm1", "lstm2"):
        kernels = [w[f"{name}.weight_{part}_l0"].T for part in ("ih", "hh")]
        model.get_layer(name).set_weights([*kernels, w[name + ".bias_ih_l0"]])
    decoder = [w["decoder.weight"].T, w["decoder.bias"]]
    model.get_layer("decoder").set_weights(decoder)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = make_model()
    assign(model, weights)
    x, y = load_data(data, ["tokens"], "labels", 16)
    train_loop(bursts, model, keras.optimizers.SGD(0.5), x, y, 16)
