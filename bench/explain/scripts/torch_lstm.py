"""Predicts the next character with an LSTM."""

# mypy: ignore-errors

import argparse

import numpy as np
import torch
from torch import nn

VOCABULARY = 64


class CharModel(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, VOCABULARY)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states)


def batches(text, batch, length, rng):
    for _ in range(100):
        starts = rng.integers(0, len(text) - length - 1, batch)
        rows = np.stack([text[s : s + length + 1] for s in starts])
        rows = torch.from_numpy(rows)
        yield rows[:, :-1], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=24)
    options = parser.parse_args()

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    text = rng.integers(0, VOCABULARY, 100_000)
    model = CharModel()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    for epoch in range(options.epochs):
        running = 0.0
        for tokens, targets in batches(text, options.batch, options.length, rng):
            optimizer.zero_grad()
            scores = model(tokens)
            loss = criterion(scores.reshape(-1, VOCABULARY), targets.reshape(-1))
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / 100:.4f}", flush=True)


if __name__ == "__main__":
    main()
