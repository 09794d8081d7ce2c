"""Session-based recommendation: GRU over clicked items, sampled ranking loss."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(47)

ITEMS, HIDDEN = 20_000, 64
SESSIONS, LENGTH = 50, 10
STEPS = 160


class SessionGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.item_in = nn.Parameter(torch.randn(ITEMS, HIDDEN) * 0.05)
        self.item_out = nn.Embedding(ITEMS, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)

    def encode(self, items):
        return F.embedding(items, self.item_in)

    def forward(self, clicked, candidates):
        states, _ = self.gru(self.encode(clicked))
        return (states.unsqueeze(2) * self.item_out(candidates)).sum(-1)


def fake_sessions():
    topic = torch.randint(0, ITEMS // 100, (SESSIONS, 1)) * 100
    clicks = topic + torch.randint(0, 100, (SESSIONS, LENGTH + 1))
    return clicks[:, :-1], clicks[:, 1:]


model = SessionGRU()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.time()
running = 0.0
for step in range(1, STEPS + 1):
    clicked, following = fake_sessions()
    negatives = torch.randint(0, ITEMS, (SESSIONS, LENGTH, 15))
    candidates = torch.cat([following.unsqueeze(2), negatives], 2)
    scores = model(clicked, candidates)
    loss = F.cross_entropy(scores.flatten(0, 1), torch.zeros(SESSIONS * LENGTH, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()
    if step % 20 == 0:
        print(f"step {step} loss {running / 20:.4f} {time.time() - start:.1f}s")
        running = 0.0
