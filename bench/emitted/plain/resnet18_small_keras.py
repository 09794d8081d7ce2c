"""The ResNet of recipes/resnet18_small.toml in Keras, as one would type it."""

# mypy: ignore-errors

from keras_loop import assign, keras, load_data, train_loop
from pairing.bursts import Bursts

layers = keras.layers


def conv(x, channels, size, stride, name):
    if size > 1:
        x = layers.ZeroPadding2D(size // 2)(x)
    return layers.Conv2D(channels, size, stride, use_bias=False, name=name)(x)


def norm(x, name):
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=name)(x)


def block(x, channels, stride, name):
    h = norm(conv(x, channels, 3, stride, name + "_conv1"), name + "_bn1")
    h = layers.Activation("relu")(h)
    h = norm(conv(h, channels, 3, 1, name + "_conv2"), name + "_bn2")
    if stride > 1:
        x = conv(x, channels, 1, stride, name + "_downsample_0")
        x = norm(x, name + "_downsample_1")
    return layers.Activation("relu")(layers.Add()([h, x]))


def make_model(width=8, classes=10):
    inputs = keras.Input((64, 64, 3))
    x = layers.Activation("relu")(norm(conv(inputs, width, 7, 2, "conv1"), "bn1"))
    # What is pooled is not negative, so that zeros pad it as well as anything.
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage in range(4):
        for n in range(2):
            stride = 2 if stage > 0 and n == 0 else 1
            x = block(x, width << stage, stride, f"layer{stage + 1}_{n}")
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(classes, name="fc")(x))


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = make_model()
    assign(model, weights)
    optimizer = keras.optimizers.SGD(2e-4, momentum=0.9, weight_decay=1e-4)
    x, y = load_data(data, ["x"], "y", 32)
    train_loop(bursts, model, optimizer, x, y, 32)
