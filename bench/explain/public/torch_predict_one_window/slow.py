"""Fit a small LSTM on a bunch of hourly series and compute historical forecasts for each of them."""
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

INPUT_CHUNK = 72
OUTPUT_CHUNK = 12
N_SERIES = 24
SERIES_LEN = 1300
HOLDOUT = 220


def make_series(seed=7):
    rng = np.random.RandomState(seed)
    t = np.arange(SERIES_LEN)
    series = []
    for _ in range(N_SERIES):
        phase, amp = rng.rand() * 24, 0.5 + rng.rand()
        daily = amp * np.sin(2 * np.pi * (t + phase) / 24)
        weekly = 0.4 * np.sin(2 * np.pi * (t + phase) / 168)
        series.append((daily + weekly + 0.1 * rng.randn(SERIES_LEN)).astype(np.float32))
    return series


class SequentialDataset(Dataset):
    """(past, future) windows cut out of one or more series."""

    def __init__(self, series, input_chunk, output_chunk):
        self.series = series
        self.input_chunk = input_chunk
        self.output_chunk = output_chunk
        self.per_series = len(series[0]) - input_chunk - output_chunk + 1

    def __len__(self):
        return len(self.series) * self.per_series

    def __getitem__(self, idx):
        s, start = divmod(idx, self.per_series)
        mid = start + self.input_chunk
        past = self.series[s][start:mid]
        future = self.series[s][mid:mid + self.output_chunk]
        return torch.from_numpy(past).unsqueeze(-1), torch.from_numpy(future)


class RNNModule(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, OUTPUT_CHUNK)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


class Forecaster:
    def __init__(self, lr=2e-3, batch_size=128):
        self.module = RNNModule()
        self.batch_size = batch_size
        self.optimizer = torch.optim.Adam(self.module.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def fit(self, dataset, epochs=1):
        loader = DataLoader(dataset, batch_size=self.batch_size, shuffle=True)
        self.module.train()
        for epoch in range(epochs):
            for i, (past, future) in enumerate(loader):
                self.optimizer.zero_grad()
                loss = self.criterion(self.module(past), future)
                loss.backward()
                self.optimizer.step()
                if i % 5 == 0:
                    print(f"epoch {epoch} batch {i} loss {loss.item():.4f}")

    def predict(self, dataset):
        self.module.eval()
        predictions = []
        with torch.no_grad():
            for i in range(len(dataset)):
                past, _ = dataset[i]
                out = self.module(past.unsqueeze(0))
                predictions.append(out.squeeze(0).numpy())
        return np.stack(predictions)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    series = make_series()
    train = SequentialDataset([s[-HOLDOUT - 160:-HOLDOUT] for s in series], INPUT_CHUNK, OUTPUT_CHUNK)
    print(f"{len(train)} training windows")

    model = Forecaster()
    start = time.time()
    model.fit(train)
    print(f"fit done in {time.time() - start:.1f}s")

    start = time.time()
    for k, s in enumerate(series):
        target = SequentialDataset([s], INPUT_CHUNK, OUTPUT_CHUNK)
        pred = model.predict(target)
        truth = np.stack([target[i][1].numpy() for i in range(len(target))])
        mae = np.abs(pred - truth).mean()
        print(f"series {k:2d} windows {len(target)} mae {mae:.4f} mean {pred.mean():.4f}")
    print(f"historical forecasts done in {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
