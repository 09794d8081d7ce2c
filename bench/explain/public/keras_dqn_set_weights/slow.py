"""DQN on a small cart simulation, with a slowly moving target network."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import time

import keras
import numpy as np
import tensorflow as tf

STEPS = 1200
BATCH = 32
GAMMA, TAU = 0.97, 0.01
OBS, ACTIONS = 8, 3

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)


def make_network():
    return keras.Sequential([
        keras.Input((OBS,)),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(ACTIONS),
    ])


online, target = make_network(), make_network()
target.set_weights(online.get_weights())
optimizer = keras.optimizers.Adam(3e-4)
optimizer.build(online.trainable_variables)


@tf.function
def act(obs):
    return tf.argmax(online(obs[None])[0])


@tf.function
def learn(obs, action, reward, next_obs):
    goal = reward + GAMMA * tf.reduce_max(target(next_obs), axis=1)
    with tf.GradientTape() as tape:
        chosen = tf.gather(online(obs), action, axis=1, batch_dims=1)
        loss = tf.reduce_mean((chosen - goal) ** 2)
    grads = tape.gradient(loss, online.trainable_variables)
    optimizer.apply_gradients(zip(grads, online.trainable_variables))
    return loss


def update_target():
    mixed = [TAU * w + (1 - TAU) * t
             for w, t in zip(online.get_weights(), target.get_weights())]
    target.set_weights(mixed)


drift = rng.normal(size=(ACTIONS, OBS)).astype("float32") * 0.05
memory, obs, total = [], rng.normal(size=OBS).astype("float32"), 0.0
began = time.time()
for step in range(STEPS):
    action = int(act(tf.constant(obs))) if rng.random() > 0.1 else int(rng.integers(ACTIONS))
    next_obs = (0.97 * obs + drift[action] + 0.02 * rng.normal(size=OBS)).astype("float32")
    reward = float(-np.mean(next_obs ** 2))
    memory.append((obs, action, reward, next_obs))
    obs, total = next_obs, total + reward
    picked = [memory[i] for i in rng.integers(0, len(memory), size=BATCH)]
    batch = [np.array(column) for column in zip(*picked)]
    loss = learn(tf.constant(batch[0]), tf.constant(batch[1], tf.int32),
                 tf.constant(batch[2], tf.float32), tf.constant(batch[3]))
    update_target()
    if step % 200 == 0:
        print(f"step {step:4d} loss {float(loss):.5f} return {total / (step + 1):.4f} "
              f"[{time.time() - began:.1f}s]")
