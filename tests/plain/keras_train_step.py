"""A Keras model with a train_step of its own."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers


class CustomModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def get_model():
    inputs = keras.Input((100,))
    hidden = layers.Dense(32, activation="relu")(inputs)
    return CustomModel(inputs, layers.Dense(10)(hidden))


def main():
    model = get_model()
    model.compile(
        optimizer=keras.optimizers.SGD(learning_rate=0.1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    x = np.random.normal(size=(1000, 100)).astype("float32")
    y = np.random.randint(0, 10, 1000)
    model.fit(x, y, batch_size=50, epochs=3)


if __name__ == "__main__":
    main()
