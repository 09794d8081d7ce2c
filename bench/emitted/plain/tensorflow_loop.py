"""What every plain script in TensorFlow has: its data, its optimizers, the loop."""

# mypy: ignore-errors

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file


def load_batches(path, names, size, change=None):
    tensors = load_file(path)
    arrays = [np.asarray(tensors[name]) for name in names]
    if change:
        arrays = change(*arrays)
    starts = range(0, len(arrays[0]) - size + 1, size)
    return [tuple(tf.constant(a[i : i + size]) for a in arrays) for i in starts]


def pictures(x, y):
    return x.astype(np.float32).transpose(0, 2, 3, 1), y


def cross_entropy(logits, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    )


class Model(tf.Module):
    """Weights by their names in the file, linear ones as inputs x outputs."""

    def __init__(self, path):
        super().__init__()
        self.p = {}
        for name, w in load_file(path).items():
            trained = ".running_" not in name
            self.p[name] = tf.Variable(self.native(name, w), trainable=trained)

    def native(self, name, w):
        return w.T if w.ndim == 2 else w

    def dense(self, name, x):
        p = self.p
        return tf.tensordot(x, p[name + ".weight"], 1) + p[name + ".bias"]

    def batch_norm(self, name, x, eps=1e-5, momentum=0.1):
        p = self.p
        mean, var = tf.nn.moments(x, list(range(x.shape.rank - 1)))
        for leaf, new in (("running_mean", mean), ("running_var", var)):
            old = p[f"{name}.{leaf}"]
            old.assign((1 - momentum) * old + momentum * new)
        scale, shift = p[name + ".weight"], p[name + ".bias"]
        return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


class Adam(tf.Module):
    """With decoupled decay where there is one."""

    def __init__(self, variables, rate, eps, decay=0.0):
        super().__init__()
        self.variables_, self.rate, self.eps, self.decay = variables, rate, eps, decay
        self.t = tf.Variable(0.0, trainable=False)
        self.m = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self.v = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]

    def apply(self, grads):
        t = self.t.assign_add(1.0)
        root = tf.sqrt(1 - 0.999**t)
        rate, eps = self.rate * root / (1 - 0.9**t), self.eps * root
        for p, g, m, v in zip(self.variables_, grads, self.m, self.v, strict=True):
            g = tf.convert_to_tensor(g)
            m.assign_add(0.1 * (g - m))
            v.assign_add(0.001 * (tf.square(g) - v))
            update = rate * m / (tf.sqrt(v) + eps)
            if self.decay:
                update += self.rate * self.decay * p
            p.assign_sub(update)


class SGD(tf.Module):
    def __init__(self, variables, rate, momentum=0.0, decay=0.0):
        super().__init__()
        self.variables_, self.rate = variables, rate
        self.momentum, self.decay = momentum, decay
        if momentum:
            self.u = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]

    def apply(self, grads):
        for n, (p, g) in enumerate(zip(self.variables_, grads, strict=True)):
            if self.decay:
                g = g + self.decay * p
            if self.momentum:
                g = self.u[n].assign(self.momentum * self.u[n] + g)
            p.assign_sub(self.rate * tf.convert_to_tensor(g))


def train_loop(bursts, model, optimizer, batches):
    """`model.loss(*batch)` is what is made smaller."""
    variables = model.trainable_variables

    @tf.function
    def train_step(*batch):
        with tf.GradientTape() as tape:
            loss = model.loss(*batch)
        optimizer.apply(tape.gradient(loss, variables))
        return loss

    step = 0
    for steps in bursts:
        for _ in range(steps):
            batch = batches[step % len(batches)]
            step += 1
            loss = train_step(*batch)
        variables[-1].numpy()
        bursts.done(float(loss))
