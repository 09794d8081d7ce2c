"""Tabular Q-learning on a windy grid, many walkers sharing one table kept in a tf.Variable."""
import time

import numpy as np
import tensorflow as tf

SIDE = 60
ACTIONS = 4
WALKERS = 100
STEPS = 360
GAMMA, ALPHA, EPSILON = 0.98, 0.2, 0.1

rng = np.random.default_rng(0)
tf.random.set_seed(0)

q_table = tf.Variable(tf.zeros([SIDE * SIDE, ACTIONS]))
goal = SIDE * (SIDE // 2) + SIDE // 2
moves = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
wind = rng.integers(0, 2, size=SIDE)


def env_step(cells, actions):
    """Move the walkers, with wind that sometimes pushes upward."""
    row, col = cells // SIDE, cells % SIDE
    row = row + moves[actions, 0] - wind[col] * (rng.random(len(cells)) < 0.3)
    col = col + moves[actions, 1]
    landed = np.clip(row, 0, SIDE - 1) * SIDE + np.clip(col, 0, SIDE - 1)
    reached = landed == goal
    rewards = np.where(reached, 10.0, -0.05).astype(np.float32)
    return landed, rewards, reached


@tf.function
def q_targets(cells, actions, rewards, landed, reached):
    current = tf.gather_nd(q_table, tf.stack([cells, actions], axis=1))
    best_next = tf.reduce_max(tf.gather(q_table, landed), axis=1)
    target = rewards + GAMMA * tf.where(reached, 0.0, best_next)
    return current + ALPHA * (target - current)


@tf.function
def greedy(cells):
    return tf.argmax(tf.gather(q_table, cells), axis=1)


def write_values(cells, actions, values):
    for i in range(WALKERS):
        q_table[cells[i], actions[i]].assign(values[i])


cells = rng.integers(0, SIDE * SIDE, size=WALKERS)
goals, began = 0, time.time()
for step in range(STEPS):
    explore = rng.random(WALKERS) < EPSILON
    actions = np.where(explore, rng.integers(0, ACTIONS, size=WALKERS), greedy(cells).numpy())
    landed, rewards, reached = env_step(cells, actions)
    values = q_targets(cells, actions, rewards, landed, reached)
    write_values(cells, actions, values)
    goals += int(reached.sum())
    cells = np.where(reached, rng.integers(0, SIDE * SIDE, size=WALKERS), landed)
    if step % 20 == 0:
        print(f"step {step:4d} goals {goals} mean Q {float(tf.reduce_mean(q_table)):+.5f} "
              f"[{time.time() - began:.1f}s]")
print("goals", goals, "largest Q", float(tf.reduce_max(q_table)))
