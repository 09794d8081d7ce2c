"""Classify variable-length event sequences by the last LSTM state."""
import time

import torch
import torch.nn as nn

torch.manual_seed(79)

EVENTS, DIM, HIDDEN = 200, 32, 48
BATCH, MAX_LEN = 24, 250
STEPS = 220


class SequenceClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, DIM, padding_idx=0)
        self.lstm = nn.LSTM(DIM, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, events, lengths):
        emb = self.embed(events)
        outputs, _ = self.lstm(emb)
        last = outputs[torch.arange(len(events)), lengths - 1]
        return self.head(last)


def make_batch():
    lengths = torch.randint(MAX_LEN // 4, MAX_LEN + 1, (BATCH,))
    lengths[0] = MAX_LEN
    events = torch.randint(1, EVENTS, (BATCH, MAX_LEN))
    labels = torch.randint(0, 2, (BATCH,))
    for row in range(BATCH):
        if labels[row] == 1:
            events[row, lengths[row] - 10:lengths[row]] = 7
        events[row, lengths[row]:] = 0
    return events, lengths, labels


model = SequenceClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

start = time.time()
for step in range(1, STEPS + 1):
    events, lengths, labels = make_batch()
    logits = model(events, lengths)
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 20 == 0:
        acc = (logits.argmax(1) == labels).float().mean().item()
        print(f"step {step} loss {loss.item():.4f} acc {acc:.2f} {time.time() - start:.1f}s")
