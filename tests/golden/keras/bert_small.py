"""Trains bert_small with Keras on TensorFlow."""

import argparse
import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops
from safetensors.numpy import load_file

tf.config.experimental.enable_tensor_float_32_execution(False)

BATCH_SIZE = 1000
LEARNING_RATE = 0.001


def load_data(path):
    """Returns the list of the model's inputs and the targets."""
    tensors = load_file(path)
    tokens = tensors["tokens"].astype(np.int32)
    token_types = tensors["token_types"].astype(np.int32)
    last = tensors["last"].astype(np.int32)
    labels = tensors["labels"].astype(np.int32)
    return [tokens, token_types, last], labels


class DenseTiedToEmbedding(layers.Layer):
    """A dense layer with the weight of an embedding."""

    def __init__(self, owner, units, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        self.owner, self.units, self.use_bias = owner, units, use_bias

    def build(self, input_shape):
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(self.units,), initializer="zeros", name="bias"
            )

    def call(self, x):
        x = ops.matmul(x, ops.transpose(self.owner.embeddings))
        return x + self.bias if self.use_bias else x

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


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


def padding_mask(last, keys):
    """True up to the last token of each row: N, 1, 1, keys."""
    return ops.less_equal(ops.arange(keys), ops.expand_dims(last, (1, 2, 3)))


def attention_block(x, mask, prefix):
    q = layers.Dense(64, name=f"{prefix}_query")(x)
    q = ops.reshape(q, (-1, 24, 4, 16))
    k = layers.Dense(64, name=f"{prefix}_key")(x)
    k = ops.reshape(k, (-1, 24, 4, 16))
    v = layers.Dense(64, name=f"{prefix}_value")(x)
    v = ops.reshape(v, (-1, 24, 4, 16))
    h = ops.dot_product_attention(q, k, v, mask=mask, scale=16**-0.5)
    h = ops.reshape(h, (-1, 24, 64))
    h = layers.Dense(64, name=f"{prefix}_output")(h)
    h = layers.Dropout(0.1)(h)
    x = ops.add(x, h)
    return layers.LayerNormalization(axis=-1, epsilon=1e-12, name=f"{prefix}_norm")(x)


def encoder_block(x, mask, prefix):
    x = attention_block(x, mask, f"{prefix}_attention")
    h = layers.Dense(256, name=f"{prefix}_intermediate")(x)
    h = ops.gelu(h, approximate=False)
    h = layers.Dense(64, name=f"{prefix}_output")(h)
    h = layers.Dropout(0.1)(h)
    x = ops.add(x, h)
    return layers.LayerNormalization(axis=-1, epsilon=1e-12, name=f"{prefix}_norm")(x)


def head(x, prefix):
    x = layers.Dense(64, name=f"{prefix}_dense")(x)
    x = ops.gelu(x, approximate=False)
    return layers.LayerNormalization(axis=-1, epsilon=1e-12, name=f"{prefix}_norm")(x)


def build_model():
    """Builds the model."""
    tokens = keras.Input((24,), name="tokens", dtype="int32")
    token_types = keras.Input((24,), name="token_types", dtype="int32")
    last = keras.Input((), name="last", dtype="int32")
    embeddings_word = layers.Embedding(500, 64, name="embeddings_word")
    x = embeddings_word(tokens)
    h = layers.Embedding(2, 64, name="embeddings_token_type")(token_types)
    x = ops.add(x, h)
    x = PositionEmbedding(32, name="embeddings_position")(x)
    x = layers.LayerNormalization(axis=-1, epsilon=1e-12, name="embeddings_norm")(x)
    x = layers.Dropout(0.1)(x)
    mask = padding_mask(last, 24)
    for i in range(2):
        x = encoder_block(x, mask, f"encoder_{i}")
    x = head(x, "head")
    logits = DenseTiedToEmbedding(embeddings_word, 500, name="decoder_bias")(x)
    inputs = [tokens, token_types, last]
    return keras.Model(inputs, logits, name="bert_small")


class AdamEpsOutside(keras.optimizers.Adam):
    """Adam that divides by sqrt(v_hat) + epsilon, as in the paper's algorithm 1."""

    def update_step(self, gradient, variable, learning_rate):
        gradient = tf.convert_to_tensor(gradient)  # sums up repeated rows
        lr = ops.cast(learning_rate, variable.dtype)
        step = ops.cast(self.iterations + 1, variable.dtype)
        correction_1 = 1 - self.beta_1**step
        correction_2 = ops.sqrt(1 - self.beta_2**step)
        alpha = lr * correction_2 / correction_1
        index = self._get_variable_index(variable)
        momentum, velocity = self._momentums[index], self._velocities[index]
        m = momentum + (1 - self.beta_1) * (gradient - momentum)
        v = velocity + (1 - self.beta_2) * (ops.square(gradient) - velocity)
        self.assign(momentum, m)
        self.assign(velocity, v)
        root = ops.sqrt(v) + self.epsilon * correction_2
        self.assign_sub(variable, alpha * m / root)


def load_weights(model, path):
    """Copies weights in the common layout (kernels O, I, H, W) into the model."""
    layout = json.loads(Path(__file__).with_suffix(".layout.json").read_text())
    variables = {variable.path: variable for variable in model.variables}
    for name, weight in load_file(path).items():
        place = layout[name]
        weight = weight.reshape(place.get("view", weight.shape))
        weight = weight.transpose(place.get("perm", range(weight.ndim)))
        weight = weight.reshape(place.get("reshape", weight.shape))
        variables[place["target"]].assign(weight)


def compile_model(model):
    """Sets how the model is trained."""
    optimizer = AdamEpsOutside(
        learning_rate=LEARNING_RATE, beta_1=0.9, beta_2=0.999, epsilon=1e-8
    )
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="sum_over_batch_size"
    )
    model.compile(
        optimizer=optimizer, loss=loss, jit_compile="auto", steps_per_execution=1
    )


def fit(model, x, y, epochs, callbacks=None):
    """Trains on the full batches of the data, in file order."""
    if len(y) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rows = len(y) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        [array[:rows] for array in x],
        y[:rows],
        batch_size=BATCH_SIZE,
        epochs=epochs,
        shuffle=False,
        callbacks=callbacks,
        verbose=0,
    )


class LossPrinter(keras.callbacks.Callback):
    """Prints the loss of every tenth step and ends the training after `steps`."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.step, self.seen, self.total = steps, 0, 0, 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.seen, self.total = 0, 0.0

    def on_train_batch_end(self, batch, logs=None):
        # Keras reports the mean of the epoch so far.
        seen = min(batch + 1, self.params["steps"])
        total = logs["loss"] * seen
        done, loss = seen - self.seen, (total - self.total) / (seen - self.seen)
        self.seen, self.total = seen, total
        if -self.step % 10 < done:  # a multiple of ten lies in these steps
            print(f"step {self.step}: loss {loss:.6f}")
        self.step += done
        if self.step >= self.steps:
            self.model.stop_training = True


def main():
    folder = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=folder / "data.safetensors")
    parser.add_argument("--weights", default=folder / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()

    x, y = load_data(arguments.data)
    model = build_model()
    load_weights(model, arguments.weights)
    compile_model(model)
    printer = LossPrinter(arguments.steps)  # ends the last epoch
    fit(model, x, y, epochs=arguments.steps, callbacks=[printer])


if __name__ == "__main__":
    main()
