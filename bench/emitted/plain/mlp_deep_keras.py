"""The MLP of recipes/mlp_deep.toml in Keras, as one would type it."""

# mypy: ignore-errors

from keras_loop import assign, keras, load_data, train_loop
from pairing.bursts import Bursts

layers = keras.layers
DROPOUT = 0.5


def make_model():
    return keras.Sequential(
        [
            keras.Input((100,)),
            layers.Dense(256, name="fc1"),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="bn1"),
            layers.Activation("relu"),
            layers.Dropout(DROPOUT),
            layers.Dense(128, name="fc2"),
            layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name="bn2"),
            layers.Activation("relu"),
            layers.Dropout(DROPOUT),
            layers.Dense(10, name="fc3"),
        ]
    )


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = make_model()
    assign(model, weights)
    optimizer = keras.optimizers.Adam(1e-3, epsilon=1e-7)
    x, y = load_data(data, ["x"], "y", 1000)
    train_loop(bursts, model, optimizer, x, y, 1000)
