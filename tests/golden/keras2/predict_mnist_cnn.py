"""Predicts with mnist_cnn in Keras 2."""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import load_file, save_file
from tf_keras import layers

tf.config.experimental.enable_tensor_float_32_execution(False)

BATCH_SIZE = 256


def load_data(path):
    """Returns the model's input."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32) / 255.0
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))  # N, H, W, C
    return x


def build_model():
    """Builds the model; pictures are N, H, W, C."""
    x = keras.Input((28, 28, 1), name="x")
    h = layers.Conv2D(32, (3, 3), name="conv1")(x)
    h = tf.nn.relu(h)
    h = layers.Conv2D(32, (3, 3), name="conv2")(h)
    h = tf.nn.relu(h)
    h = layers.MaxPooling2D((2, 2), strides=(2, 2))(h)
    h = layers.Conv2D(32, (3, 3), name="conv3")(h)
    h = tf.nn.relu(h)
    h = layers.Conv2D(64, (3, 3), name="conv4")(h)
    h = tf.nn.relu(h)
    h = layers.Flatten()(h)
    h = layers.Dense(128, name="fc1")(h)
    h = tf.nn.relu(h)
    logits = layers.Dense(10, name="fc2")(h)
    return keras.Model(x, logits, name="mnist_cnn")


def load_weights(model, path):
    """Copies weights in the common layout (kernels O, I, H, W) into the model."""
    layout = json.loads(Path(__file__).with_suffix(".layout.json").read_text())
    variables = {v.name.removesuffix(":0"): v for v in model.variables}
    for name, weight in load_file(path).items():
        place = layout[name]
        weight = weight.reshape(place.get("view", weight.shape))
        weight = weight.transpose(place.get("perm", range(weight.ndim)))
        weight = weight.reshape(place.get("reshape", weight.shape))
        variables[place["target"]].assign(weight)


def compile_model(model):
    """Sets how the model is run."""
    model.compile(jit_compile=False)


def predict_step(model, x):
    return model.predict_on_batch(x)


def batches(x):
    """Endless batches as tensors, in file order; rows left over are dropped."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tf.convert_to_tensor(x[i : i + BATCH_SIZE]) for i in starts]
    return itertools.cycle(ready)


def main():
    folder = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=folder / "data.safetensors")
    parser.add_argument("--weights", default=folder / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    arguments = parser.parse_args()

    model = build_model()
    load_weights(model, arguments.weights)
    compile_model(model)
    arrays = load_data(arguments.data)
    data = batches(arrays)
    steps = len(arrays) // BATCH_SIZE if arguments.out else arguments.steps
    outputs = []
    for step in range(steps):
        output = predict_step(model, next(data))
        if step % 10 == 0:
            print(f"batch {step}: mean output {output.mean():.6f}")
        if arguments.out:
            outputs.append(np.asarray(output, np.float32))
    if arguments.out:
        save_file({"output": np.concatenate(outputs)}, arguments.out)


if __name__ == "__main__":
    main()
