"""Skip-gram with negative sampling on a synthetic corpus, big vocabulary."""
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import time

import numpy as np
import tensorflow as tf

VOCAB = 150_000
DIM = 64
BATCH = 512
NEG = 5
STEPS = 300
CLIP = 5.0


class Corpus:
    """Zipf-distributed words which like the company of their neighbours."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def words(self, shape):
        w = self.rng.zipf(1.2, size=shape) - 1
        return np.minimum(w, VOCAB - 1).astype(np.int32)

    def batches(self, steps):
        for _ in range(steps):
            center = self.words(BATCH)
            context = (center + self.rng.integers(1, 4, BATCH)) % VOCAB
            negative = self.rng.integers(0, VOCAB, (BATCH, NEG))
            yield (tf.constant(center), tf.constant(context.astype(np.int32)),
                   tf.constant(negative.astype(np.int32)))


class SkipGram(tf.Module):
    def __init__(self):
        super().__init__()
        init = tf.random_uniform_initializer(-0.05, 0.05, seed=1)
        self.emb_in = tf.Variable(init((VOCAB, DIM)), name="emb_in")
        self.emb_out = tf.Variable(init((VOCAB, DIM)), name="emb_out")

    def __call__(self, center, context, negative):
        c = tf.nn.embedding_lookup(self.emb_in, center)
        pos = tf.nn.embedding_lookup(self.emb_out, context)
        neg = tf.nn.embedding_lookup(self.emb_out, negative)
        pos_logit = tf.reduce_sum(c * pos, -1)
        neg_logit = tf.einsum("bd,bnd->bn", c, neg)
        loss = tf.nn.sigmoid_cross_entropy_with_logits(
            tf.ones_like(pos_logit), pos_logit)
        loss += tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(
            tf.zeros_like(neg_logit), neg_logit), -1)
        return tf.reduce_mean(loss)


class Trainer:
    def __init__(self, model, lr=20.0):
        self.model = model
        self.opt = tf.keras.optimizers.SGD(lr)
        self.opt.build(model.trainable_variables)

    def clip(self, grads):
        clipped = []
        for g in grads:
            g = tf.convert_to_tensor(g)
            clipped.append(tf.clip_by_norm(g, CLIP))
        return clipped

    @tf.function
    def train_step(self, center, context, negative):
        with tf.GradientTape() as tape:
            loss = self.model(center, context, negative)
        variables = self.model.trainable_variables
        grads = self.clip(tape.gradient(loss, variables))
        self.opt.apply_gradients(zip(grads, variables))
        return loss


def main():
    model = SkipGram()
    trainer = Trainer(model)
    losses = []
    start = time.perf_counter()
    for step, batch in enumerate(Corpus().batches(STEPS), 1):
        losses.append(trainer.train_step(*batch))
        if step % 60 == 0:
            mean = np.mean([float(l) for l in losses[-60:]])
            print(f"step {step:4d}  loss {mean:.4f}")
    print(f"{STEPS / (time.perf_counter() - start):.1f} steps/s")


if __name__ == "__main__":
    main()
