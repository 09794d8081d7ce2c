"""The network of recipes/dlrm_tiny.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import Adam, Model, load_batches, train_loop


class DLRM(Model):
    def native(self, name, w):
        return w.T if w.ndim == 2 and not name.startswith("words.") else w

    def loss(self, numbers, ids, y):
        p = self.p
        x = tf.nn.relu(self.dense("below.0", numbers))
        x = tf.nn.relu(self.dense("below.2", x))
        words = tf.nn.embedding_lookup(p["words.weight"], ids)
        both = tf.concat([x[:, None], words], 1)
        pairs = tf.reshape(tf.matmul(both, both, transpose_b=True), (len(x), -1))
        x = tf.concat([x, tf.gather(pairs, self.places, axis=1)], 1)
        x = tf.nn.relu(self.dense("above.0", x))
        x = tf.nn.relu(self.dense("above.2", x))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(y, self.dense("above.4", x))
        return tf.reduce_mean(losses)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = DLRM(weights)
    model.places = tf.cast(model.p.pop("places"), tf.int32)
    optimizer = Adam(model.trainable_variables, 1e-4, 1e-7, decay=0.01)
    batches = load_batches(data, ("numbers", "ids", "y"), 64)
    train_loop(bursts, model, optimizer, batches)
