"""Frame classifier on utterances of different length (compiled)."""
import os
import tempfile
import time

# several jobs share this account: keep compiler output of each run apart
scratch = tempfile.TemporaryDirectory(prefix="compile-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch.name

import torch
import torch.nn as nn

torch.manual_seed(89)

FBANK, HIDDEN, PHONES = 40, 64, 30
BATCH = 8
STEPS = 400


class FrameNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FBANK, HIDDEN)
        self.mid = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, PHONES)

    def forward(self, frames):
        x = torch.relu(self.inp(frames))
        x = torch.relu(self.mid(x))
        context = x.mean(dim=1, keepdim=True)
        return self.out(torch.tanh(x + context))


model = FrameNet()
net = torch.compile(model, dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

phone_centers = torch.randn(PHONES, FBANK)
start = time.time()
for step in range(1, STEPS + 1):
    length = int(torch.randint(60, 300, (1,)))
    phones = torch.randint(0, PHONES, (BATCH, length))
    frames = phone_centers[phones] + 0.8 * torch.randn(BATCH, length, FBANK)
    logits = net(frames)
    loss = nn.functional.cross_entropy(logits.reshape(-1, PHONES), phones.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (1, 5, 10) or step % 100 == 0:
        print(f"batch {step} loss {loss.item():.4f} {time.time() - start:.1f}s", flush=True)
