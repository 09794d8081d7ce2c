"""Extended Kalman filter bank with a learned dynamics network, many tracks in parallel."""
import time

import numpy as np
import tensorflow as tf

TRACKS = 96
STATE, MEASURED = 10, 3
STEPS = 1000

rng = np.random.default_rng(0)
tf.random.set_seed(0)

w1 = tf.constant(rng.normal(size=(STATE, 48)) / np.sqrt(STATE), tf.float32)
w2 = tf.constant(rng.normal(size=(48, STATE)) / np.sqrt(48), tf.float32)
observe = tf.constant(rng.normal(size=(MEASURED, STATE)) / np.sqrt(STATE), tf.float32)
process_noise = 0.01 * tf.eye(STATE)
sensor_noise = 0.1 * tf.eye(MEASURED)


def dynamics(x):
    return 0.95 * x + 0.1 * tf.tanh(x @ w1) @ w2


def dynamics_with_jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        moved = dynamics(x)
    jac = tape.jacobian(moved, x)
    jac = tf.einsum("bibj->bij", jac)
    return moved, jac


@tf.function
def filter_step(mean, cov, measurement):
    mean, jac = dynamics_with_jacobian(mean)
    cov = jac @ cov @ tf.linalg.matrix_transpose(jac) + process_noise
    residual = measurement - mean @ tf.transpose(observe)
    cross = cov @ tf.transpose(observe)
    innovation = observe @ cross + sensor_noise
    gain = tf.linalg.matrix_transpose(
        tf.linalg.solve(innovation, tf.linalg.matrix_transpose(cross)))
    mean = mean + tf.linalg.matvec(gain, residual)
    cov = cov - gain @ tf.linalg.matrix_transpose(cross)
    return mean, cov


truth = tf.constant(rng.normal(size=(TRACKS, STATE)).astype(np.float32))
mean = tf.zeros([TRACKS, STATE])
cov = tf.eye(STATE, batch_shape=[TRACKS])
began = time.time()
for step in range(STEPS):
    kick = rng.normal(size=(TRACKS, STATE)).astype(np.float32)
    truth = dynamics(truth) + 0.1 * kick
    noise = rng.normal(size=(TRACKS, MEASURED)).astype(np.float32)
    measurement = truth @ tf.transpose(observe) + 0.3 * noise
    mean, cov = filter_step(mean, cov, measurement)
    if step % 100 == 0:
        error = float(tf.sqrt(tf.reduce_mean((mean - truth) ** 2)))
        spread = float(tf.reduce_mean(tf.linalg.trace(cov)))
        print(f"step {step:4d} rmse {error:.4f} trace {spread:.4f} [{time.time() - began:.1f}s]")
print(f"final rmse {float(tf.sqrt(tf.reduce_mean((mean - truth) ** 2))):.4f}")
