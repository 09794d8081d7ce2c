# Anomaly scores for sensor events, polled from a gateway and scored
# with a small conv autoencoder.
import os
os.environ["KERAS_BACKEND"] = "jax"

import numpy as np
import keras
from keras import layers

WINDOW = 64
CHANNELS = 4
MAX_EVENTS = 128
N_POLLS = 64


def make_windows(rng, n):
    t = np.arange(WINDOW)[None, :, None]
    freq = rng.uniform(0.05, 0.3, size=(n, 1, CHANNELS))
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1, CHANNELS))
    return (np.sin(freq * t + phase) + rng.normal(0, 0.05, (n, WINDOW, CHANNELS))).astype("float32")


def build_autoencoder():
    inputs = keras.Input((WINDOW, CHANNELS))
    x = layers.Conv1D(16, 5, strides=2, padding="same", activation="relu")(inputs)
    x = layers.Conv1D(16, 5, strides=2, padding="same", activation="relu")(x)
    x = layers.Conv1D(8, 3, padding="same", activation="relu")(x)
    x = layers.UpSampling1D(2)(x)
    x = layers.Conv1D(16, 5, padding="same", activation="relu")(x)
    x = layers.UpSampling1D(2)(x)
    outputs = layers.Conv1D(CHANNELS, 5, padding="same")(x)
    model = keras.Model(inputs, outputs, name="autoencoder")
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse")
    return model


class Gateway:
    def __init__(self, n_polls, seed):
        self.rng = np.random.default_rng(seed)
        self.n_polls = n_polls

    def __iter__(self):
        for _ in range(self.n_polls):
            n = int(self.rng.integers(1, MAX_EVENTS + 1))
            events = make_windows(self.rng, n)
            broken = self.rng.random(n) < 0.05
            events[broken, WINDOW // 2:, 0] = 1.5
            yield events, broken


class Scorer:
    def __init__(self, model):
        self.model = model

    def score(self, events):
        reconstructed = self.model.predict_on_batch(events)
        return np.square(reconstructed - events).mean(axis=(1, 2))


def main():
    keras.utils.set_random_seed(13)
    train = make_windows(np.random.default_rng(0), 2048)
    model = build_autoencoder()
    history = model.fit(train, train, batch_size=64, epochs=3, verbose=0)
    for epoch, loss in enumerate(history.history["loss"]):
        print(f"epoch {epoch + 1} loss {loss:.4f}", flush=True)

    scorer = Scorer(model)
    threshold = float(np.quantile(scorer.score(train[:MAX_EVENTS]), 0.95))
    print(f"threshold {threshold:.4f}")

    events_seen = alarms = hits = 0
    score_sum = 0.0
    for poll, (events, broken) in enumerate(Gateway(N_POLLS, seed=1), start=1):
        scores = scorer.score(events)
        flagged = scores > threshold
        events_seen += len(events)
        score_sum += float(scores.sum())
        alarms += int(flagged.sum())
        hits += int((flagged & broken).sum())
        if poll % 8 == 0:
            print(f"poll {poll:4d} events {events_seen} mean score {score_sum / events_seen:.4f} "
                  f"alarms {alarms} hits {hits}", flush=True)


if __name__ == "__main__":
    main()
