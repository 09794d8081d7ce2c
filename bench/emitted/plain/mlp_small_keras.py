"""The MLP of recipes/mlp_small.toml in Keras, as one would type it."""

# mypy: ignore-errors

from keras_loop import assign, keras, load_data, train_loop
from pairing.bursts import Bursts

layers = keras.layers


def make_model():
    return keras.Sequential(
        [
            keras.Input((100,)),
            layers.Dense(128, activation="relu", name="fc1"),
            layers.Dense(10, name="fc2"),
        ]
    )


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = make_model()
    assign(model, weights)
    optimizer = keras.optimizers.Adam(1e-3, epsilon=1e-7)
    x, y = load_data(data, ["x"], "y", 1000)
    train_loop(bursts, model, optimizer, x, y, 1000)
