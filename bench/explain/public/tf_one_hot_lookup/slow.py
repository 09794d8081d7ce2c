"""LINE: Large-scale Information Network Embedding (second order proximity)."""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

NUM_OF_NODES = 5000
NUM_OF_COMMUNITIES = 25
NUM_OF_EDGES = 60000
EMBEDDING_DIM = 64
BATCH_SIZE = 128
K = 4
LEARNING_RATE = 200.0
NUM_BATCHES = 600


def make_graph(seed=1):
    rng = np.random.RandomState(seed)
    group = rng.randint(0, NUM_OF_COMMUNITIES, size=NUM_OF_NODES)
    members = [np.where(group == c)[0] for c in range(NUM_OF_COMMUNITIES)]
    u = rng.randint(0, NUM_OF_NODES, size=NUM_OF_EDGES)
    inside = rng.rand(NUM_OF_EDGES) < 0.9
    pick = rng.rand(NUM_OF_EDGES)
    v = np.empty_like(u)
    for n in range(NUM_OF_EDGES):
        if inside[n]:
            pool = members[group[u[n]]]
            v[n] = pool[int(pick[n] * len(pool))]
        else:
            v[n] = int(pick[n] * NUM_OF_NODES)
    return u.astype(np.int32), v.astype(np.int32)


class BatchLoader:
    def __init__(self, u, v, seed=2):
        self.u, self.v = u, v
        self.rng = np.random.RandomState(seed)
        degree = np.bincount(v, minlength=NUM_OF_NODES) + 1.0
        self.neg_cdf = np.cumsum(degree ** 0.75)
        self.neg_cdf /= self.neg_cdf[-1]

    def fetch_batch(self):
        e = self.rng.randint(0, len(self.u), size=BATCH_SIZE)
        u_i = np.repeat(self.u[e], K + 1)
        neg = np.searchsorted(self.neg_cdf, self.rng.rand(BATCH_SIZE, K))
        u_j = np.concatenate([self.v[e][:, None], neg], axis=1).reshape(-1)
        label = np.full((BATCH_SIZE, K + 1), -1.0, np.float32)
        label[:, 0] = 1.0
        return u_i.astype(np.int32), u_j.astype(np.int32), label.reshape(-1)


class LINEModel(tf.Module):
    def __init__(self, seed=3):
        rng = np.random.RandomState(seed)
        scale = 2.0 / np.sqrt(EMBEDDING_DIM)
        shape = (NUM_OF_NODES, EMBEDDING_DIM)
        self.embedding = tf.Variable(
            rng.uniform(-scale, scale, shape), dtype=tf.float32, name="target_embedding")
        self.context_embedding = tf.Variable(
            rng.uniform(-scale, scale, shape), dtype=tf.float32, name="context_embedding")

    def loss(self, u_i, u_j, label):
        u_i_embedding = tf.matmul(tf.one_hot(u_i, depth=NUM_OF_NODES), self.embedding)
        u_j_embedding = tf.matmul(tf.one_hot(u_j, depth=NUM_OF_NODES), self.context_embedding)
        inner_product = tf.reduce_sum(u_i_embedding * u_j_embedding, axis=1)
        return -tf.reduce_mean(tf.math.log_sigmoid(label * inner_product))


def main():
    u, v = make_graph()
    loader = BatchLoader(u, v)
    model = LINEModel()
    variables = [model.embedding, model.context_embedding]
    optimizer = tf.keras.optimizers.SGD(learning_rate=LEARNING_RATE)
    optimizer.build(variables)

    @tf.function
    def train(u_i, u_j, label):
        with tf.GradientTape() as tape:
            loss = model.loss(u_i, u_j, label)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables))
        return loss

    print("batches\tloss\ttime")
    start = time.time()
    for b in range(NUM_BATCHES):
        loss = train(*[tf.constant(t) for t in loader.fetch_batch()])
        if b % 20 == 0:
            print("%d\t%.4f\t%.1f s" % (b, loss, time.time() - start))

    emb = model.embedding.numpy()
    print("norm of embedding %.3f" % np.linalg.norm(emb))


if __name__ == "__main__":
    main()
