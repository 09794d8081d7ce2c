"""Character language model with a TensorBoard-like run log (scalars + histograms)."""
import json
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

VOCAB, CONTEXT, DIM = 96, 24, 48
HIDDEN = 512
BATCH = 128
STEPS = 120


class RunWriter:
    """Appends events to a jsonl file, in the manner of SummaryWriter."""

    def __init__(self, logdir, bins=64):
        os.makedirs(logdir, exist_ok=True)
        self.path = os.path.join(logdir, "events.jsonl")
        self.file = open(self.path, "w")
        self.bins = bins

    def _write(self, kind, tag, step, value):
        self.file.write(json.dumps({"kind": kind, "tag": tag, "step": step, "value": value}) + "\n")

    def add_scalar(self, tag, value, step):
        self._write("scalar", tag, step, float(value))

    def add_histogram(self, tag, values, step):
        values = values.detach().cpu().numpy().astype(np.float64).reshape(-1)
        counts, edges = np.histogram(values, bins=self.bins)
        q = np.percentile(values, [5, 50, 95])
        self._write("histogram", tag, step, {
            "min": values.min(), "max": values.max(), "num": values.size,
            "sum": values.sum(), "sum_squares": float(values.dot(values)),
            "percentiles": q.tolist(), "edges": edges.tolist(), "counts": counts.tolist(),
        })

    def close(self):
        self.file.close()


class CharMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.fc1 = nn.Linear(CONTEXT * DIM, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, VOCAB)

    def forward(self, idx):
        h = self.embed(idx).flatten(1)
        h = torch.tanh(self.fc1(h))
        h = torch.tanh(self.fc2(h))
        return self.out(h)


def make_corpus(n=60000):
    g = torch.Generator().manual_seed(9)
    jump = torch.randint(0, VOCAB, (VOCAB,), generator=g)
    noise = torch.rand(n, generator=g) < 0.15
    rand = torch.randint(0, VOCAB, (n,), generator=g)
    text = [0]
    for i in range(1, n):
        text.append(int(rand[i]) if noise[i] else (int(jump[text[-1]]) + i % 7) % VOCAB)
    return torch.tensor(text)


def main():
    corpus = make_corpus()
    windows = corpus.unfold(0, CONTEXT + 1, 1)
    model = CharMLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    writer = RunWriter(tempfile.mkdtemp(prefix="charlm_"))
    start = time.time()
    for step in range(1, STEPS + 1):
        batch = windows[torch.randint(0, len(windows), (BATCH,))]
        loss = F.cross_entropy(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        writer.add_scalar("train/loss", loss.item(), step)
        for name, p in model.named_parameters():
            writer.add_histogram(f"weights/{name}", p, step)
            writer.add_histogram(f"grads/{name}", p.grad, step)

        if step % 20 == 0:
            print(f"step {step}  loss {loss.item():.4f}  {time.time() - start:.1f}s")
    writer.close()
    print(f"log size {os.path.getsize(writer.path) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
