"""Predicts with residual_cnn in Keras 2."""

import argparse
import itertools
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import load_file, save_file
from tf_keras import layers

BATCH_SIZE = 256


def load_data(path):
    """Returns the model's input."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32) / 255.0
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))  # N, H, W, C
    return x


def block(x, prefix):
    x = layers.Conv2D(
        16, (3, 3), padding="same", use_bias=False, name=f"{prefix}_conv1"
    )(x)
    x = layers.BatchNormalization(name=f"{prefix}_bn1")(x)
    x = tf.nn.relu(x)
    x = layers.Conv2D(
        16, (3, 3), padding="same", use_bias=False, name=f"{prefix}_conv2"
    )(x)
    return layers.BatchNormalization(name=f"{prefix}_bn2")(x)


def down_block(x, prefix):
    h = layers.Conv2D(
        32, (1, 1), strides=(2, 2), use_bias=False, name=f"{prefix}_down_conv"
    )(x)
    h = layers.BatchNormalization(name=f"{prefix}_down_bn")(h)
    x_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(x)
    x = layers.Conv2D(
        32, (3, 3), strides=(2, 2), use_bias=False, name=f"{prefix}_conv1"
    )(x_padded)
    x = layers.BatchNormalization(name=f"{prefix}_bn1")(x)
    x = tf.nn.relu(x)
    x = layers.Conv2D(
        32, (3, 3), padding="same", use_bias=False, name=f"{prefix}_conv2"
    )(x)
    x = layers.BatchNormalization(name=f"{prefix}_bn2")(x)
    return tf.add(x, h)


def build_model():
    """Builds the model; pictures are N, H, W, C."""
    x = keras.Input((28, 28, 1), name="x")
    x_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(x)
    h = layers.Conv2D(16, (3, 3), strides=(2, 2), use_bias=False, name="stem_conv")(
        x_padded
    )
    h = layers.BatchNormalization(name="stem_bn")(h)
    h = tf.nn.relu(h)
    u = block(h, "block1")
    h = tf.add(u, h)
    h = tf.nn.relu(h)
    h = down_block(h, "block2")
    h = tf.nn.relu(h)
    h = layers.GlobalAveragePooling2D()(h)
    logits = layers.Dense(10, name="fc")(h)
    return keras.Model(x, logits, name="residual_cnn")


def compile_model(model):
    """Sets how the model is run."""
    model.compile(jit_compile=True)


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
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    arguments = parser.parse_args()

    model = build_model()
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
