"""Trains mlp_small with Keras 2."""

import argparse
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import load_file
from tf_keras import layers

tf.config.experimental.enable_tensor_float_32_execution(False)

BATCH_SIZE = 1000
LEARNING_RATE = 0.1
WEIGHT_DECAY = 0.01
WARMUP_STEPS = 10
WARMUP_FROM = 0.1
DECAY_STEPS = 90
FINAL_SHARE = 0.01
CLIP_NORM = 1.0
EMA_DECAY = 0.99
NO_DECAY = ("fc1/bias", "fc2/bias")


def load_data(path):
    """Returns the model's input and the targets."""
    tensors = load_file(path)
    x = tensors["x"].astype(np.float32)
    y = tensors["y"].astype(np.int32)
    return x, y


def build_model():
    """Builds the model."""
    x = keras.Input((100,), name="x")
    h = layers.Dense(128, name="fc1")(x)
    h = tf.nn.relu(h)
    logits = layers.Dense(10, name="fc2")(h)
    return keras.Model(x, logits, name="mlp_small")


def learning_rate(step):
    """That of a step; steps are counted from 0."""
    step = tf.cast(step, keras.backend.floatx())
    after = step - WARMUP_STEPS
    done = tf.minimum(after / DECAY_STEPS, 1.0)
    warm = WARMUP_FROM + (1 - WARMUP_FROM) * step / WARMUP_STEPS
    share = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + tf.cos(np.pi * done)) / 2
    return LEARNING_RATE * tf.where(step < WARMUP_STEPS, warm, share)


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of every step."""

    def __call__(self, step):
        return learning_rate(step)

    def get_config(self):
        return {}


class SGDL2Momentum(keras.optimizers.SGD):
    """SGD with L2 decay, added to the gradient; in Keras decay is decoupled."""

    def update_step(self, gradient, variable):
        if self._use_weight_decay(variable):
            gradient = gradient + WEIGHT_DECAY * variable
        lr = tf.cast(self.learning_rate, variable.dtype)
        index = self._index_dict[self._var_key(variable)]
        v = self.momentums[index]
        v.assign(self.momentum * v + gradient)
        variable.assign_sub(lr * v)

    def _update_model_variables_moving_average(self, var_list):
        # The first update copies, as in Keras 3; Keras 2 begins with the initial weights.
        for variable in var_list:
            index = self._index_dict[self._var_key(variable)]
            average = self._model_variables_moving_average[index]
            kept = EMA_DECAY * tf.cast(self.iterations > 0, variable.dtype)
            average.assign(kept * average + (1 - kept) * variable)


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
    """Sets how the model is trained."""
    optimizer = SGDL2Momentum(
        learning_rate=Schedule(),
        momentum=0.9,
        nesterov=False,
        global_clipnorm=CLIP_NORM,
        use_ema=True,
        ema_momentum=EMA_DECAY,
    )
    named = {v.name.removesuffix(":0"): v for v in model.trainable_variables}
    kept = [named[name] for name in NO_DECAY]
    optimizer.exclude_from_weight_decay(var_list=kept)
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="sum_over_batch_size"
    )
    model.compile(
        optimizer=optimizer, loss=loss, jit_compile=False, steps_per_execution=1
    )


def fit(model, x, y, epochs, callbacks=None):
    """Trains on the full batches of the data, in file order."""
    if len(y) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rows = len(y) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        x[:rows],
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
