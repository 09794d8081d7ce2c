"""Pre-train a small BERT-like encoder with masked language modelling."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)

VOCAB, DIM, LENGTH, BATCH = 10_000, 96, 64, 8
MASK_ID, MASK_RATE, STEPS = 1, 0.15, 260


class MaskedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.position = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.LayerNorm(DIM))
        self.decoder = nn.Linear(DIM, VOCAB)

    def forward(self, tokens, labels):
        hidden = self.encoder(self.embed(tokens) + self.position)
        scores = self.decoder(self.transform(hidden))
        return F.cross_entropy(scores.view(-1, VOCAB), labels.view(-1), ignore_index=-100)


def fake_batch():
    start = torch.randint(2, VOCAB - LENGTH, (BATCH, 1))
    tokens = start + torch.arange(LENGTH)
    masked = torch.rand(BATCH, LENGTH) < MASK_RATE
    labels = tokens.masked_fill(~masked, -100)
    return tokens.masked_fill(masked, MASK_ID), labels


model = MaskedLM()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

start_time = time.time()
for step in range(1, STEPS + 1):
    tokens, labels = fake_batch()
    loss = model(tokens, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f} {step / (time.time() - start_time):.2f} steps/s")
