"""BPR matrix factorisation on implicit feedback, 3 negatives per positive."""
import random
import time

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
USERS, ITEMS, PER_USER, NEG, BATCH, STEPS = 2000, 12000, 40, 3, 256, 280


class Interactions(Dataset):
    def __init__(self, pairs, n_items):
        self.pairs = pairs
        self.n_items = n_items
        self.item_pool = set(range(n_items))
        self.seen = {}
        for u, i in pairs:
            self.seen.setdefault(u, set()).add(i)

    def __len__(self):
        return len(self.pairs)

    def negatives(self, user):
        candidates = list(self.item_pool - self.seen[user])
        return random.sample(candidates, NEG)

    def __getitem__(self, k):
        user, item = self.pairs[k]
        return user, item, np.array(self.negatives(user))


class MF(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.item = nn.Embedding(ITEMS, dim)

    def forward(self, u, pos, neg):
        e = self.user(u)
        good = (e * self.item(pos)).sum(-1, keepdim=True)
        bad = (e.unsqueeze(1) * self.item(neg)).sum(-1)
        return -F.logsigmoid(good - bad).mean()


pairs = [(u, int(i)) for u in range(USERS)
         for i in np.random.choice(ITEMS, PER_USER, replace=False)]
loader = DataLoader(Interactions(pairs, ITEMS), batch_size=BATCH, shuffle=True)
model = MF()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
start = time.time()
for step, (u, pos, neg) in enumerate(loader, 1):
    loss = model(u, pos, neg)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f} "
              f"{(time.time() - start) / step * 1e3:.1f} ms/step", flush=True)
    if step == STEPS:
        break
print(f"total {time.time() - start:.1f} s")
