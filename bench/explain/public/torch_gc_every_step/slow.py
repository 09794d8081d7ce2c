"""Train an intent classifier on chat messages kept as Python records."""
import gc
import random
import time

import torch
from torch import nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)
MESSAGES, VOCAB, INTENTS, BATCH, STEPS = 7000, 5000, 12, 64, 100


def make_message(k):
    intent = k % INTENTS
    tokens = [{"id": random.randrange(VOCAB // INTENTS) * INTENTS + intent
               if random.random() < 0.3 else random.randrange(VOCAB),
               "span": [j, j + 1]} for j in range(random.randrange(5, 12))]
    return {"tokens": tokens, "intent": intent, "meta": {"user": k % 977}}


def collate(messages):
    longest = max(len(m["tokens"]) for m in messages)
    ids = torch.tensor([[t["id"] + 1 for t in m["tokens"]]
                        + [0] * (longest - len(m["tokens"])) for m in messages])
    return ids, torch.tensor([m["intent"] for m in messages])


class Classifier(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 1, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, INTENTS)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        return self.out(h.max(1).values)


data = [make_message(k) for k in range(MESSAGES)]
model = Classifier()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
start = time.time()
running = 0.0
for step in range(1, STEPS + 1):
    ids, intents = collate(random.sample(data, BATCH))
    loss = F.cross_entropy(model(ids), intents)
    opt.zero_grad()
    loss.backward()
    opt.step()
    running = 0.9 * running + 0.1 * loss.item()
    del ids, intents, loss
    gc.collect()  # keep memory low
    if step % 10 == 0:
        print(f"step {step} loss {running:.4f} "
              f"{(time.time() - start) / step * 1e3:.0f} ms/step", flush=True)
print(f"total {time.time() - start:.1f} s")
