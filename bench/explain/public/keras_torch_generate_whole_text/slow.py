# character rnn: learn a small made-up corpus, then write a few lines with it
import os
os.environ["KERAS_BACKEND"] = "torch"

import numpy as np
import torch
import keras
from keras import layers

torch.set_num_threads(1)

WORDS = ["the", "rain", "falls", "on", "old", "roofs", "and", "night", "comes", "slowly", "over", "hills"]
HIDDEN = 96
SEQ = 24
BATCH = 64
TRAIN_STEPS = 30
N_LINES = 4
LINE_LENGTH = 400


def build_corpus(n_words, seed=0):
    rng = np.random.default_rng(seed)
    return " ".join(WORDS[i] for i in rng.integers(0, len(WORDS), n_words))


text = build_corpus(4000)
chars = sorted(set(text))
char_indices = {c: i for i, c in enumerate(chars)}
indices_char = {i: c for i, c in enumerate(chars)}
encoded = np.array([char_indices[c] for c in text])


def build_model():
    inputs = keras.Input((None,), dtype="int32")
    x = layers.Embedding(len(chars), 24)(inputs)
    x = layers.LSTM(HIDDEN, return_sequences=True)(x)
    outputs = layers.Dense(len(chars))(x)
    return keras.Model(inputs, outputs)


def batches(rng):
    while True:
        starts = rng.integers(0, len(encoded) - SEQ - 1, BATCH)
        window = starts[:, None] + np.arange(SEQ + 1)[None]
        block = encoded[window]
        yield block[:, :-1], block[:, 1:]


def sample(preds, rng, temperature=0.7):
    preds = np.asarray(preds, dtype="float64") / temperature
    probs = np.exp(preds - preds.max())
    probs /= probs.sum()
    return int(np.searchsorted(np.cumsum(probs), rng.random()))


def train(model):
    model.compile(
        optimizer=keras.optimizers.Adam(5e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    data = batches(np.random.default_rng(1))
    for step in range(1, TRAIN_STEPS + 1):
        x, y = next(data)
        loss = model.train_on_batch(x, y)
        if step % 10 == 0:
            print(f"step {step:3d} loss {float(loss):.4f}", flush=True)


def generate(model, seed_text, length, rng):
    generated = seed_text
    score = 0.0
    for n in range(1, length + 1):
        x = np.array([[char_indices[c] for c in generated]], dtype="int32")
        logits = model.predict_on_batch(x)[0, -1]
        next_index = sample(logits, rng)
        generated += indices_char[next_index]
        score += float(logits[next_index] - np.log(np.exp(logits).sum()))
        if n % 40 == 0:
            print(f"  {n} chars, mean log prob {score / n:.4f}", flush=True)
    return generated


def main():
    keras.utils.set_random_seed(4)
    model = build_model()
    train(model)
    rng = np.random.default_rng(2)
    for line in range(N_LINES):
        seed_text = text[line * 50: line * 50 + 20]
        print(f"line {line + 1}: {generate(model, seed_text, LINE_LENGTH, rng)!r}", flush=True)


if __name__ == "__main__":
    main()
