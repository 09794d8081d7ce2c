"""The CNN of recipes/mnist_cnn.toml in Keras, as one would type it."""

# mypy: ignore-errors

from keras_loop import assign, keras, load_data, native, train_loop
from pairing.bursts import Bursts

layers = keras.layers


def make_model():
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu", name="conv1"),
            layers.Conv2D(32, 3, activation="relu", name="conv2"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, activation="relu", name="conv3"),
            layers.Conv2D(64, 3, activation="relu", name="conv4"),
            layers.Flatten(),
            layers.Dense(128, activation="relu", name="fc1"),
            layers.Dense(10, name="fc2"),
        ]
    )


def turned(name, w):
    if name == "fc1.weight":  # reads pictures of 64 channels, 8 by 8
        return w.reshape(128, 64, 8, 8).transpose(2, 3, 1, 0)
    return native(name, w)


def train(bursts: Bursts, data: str, weights: str) -> None:
    x, y = load_data(data, ["x"], "y", 256)
    model = make_model()
    assign(model, weights, turned)
    optimizer = keras.optimizers.RMSprop(1e-4, rho=0.9, epsilon=1e-7)
    train_loop(bursts, model, optimizer, x.astype("float32") / 255, y, 256)
