"""Skip-gram word vectors with negative sampling on a synthetic corpus."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)

VOCAB = 300_000
DIM = 100
BATCH = 512
NEGATIVES = 5
STEPS = 40


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(VOCAB, DIM)
        self.context = nn.Embedding(VOCAB, DIM)
        nn.init.uniform_(self.center.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, positive, negative):
        v = self.center(center)
        pos = (v * self.context(positive)).sum(-1)
        neg = torch.bmm(self.context(negative), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(1)).mean()


def word_ids(*shape):
    # rough Zipf: squaring a uniform sample favours small ids
    return (torch.rand(*shape) ** 3 * VOCAB).long().clamp_(max=VOCAB - 1)


def main():
    model = SkipGram()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    start = time.time()
    running = 0.0
    for step in range(1, STEPS + 1):
        center = word_ids(BATCH)
        positive = (center + torch.randint(1, 50, (BATCH,))) % VOCAB
        negative = word_ids(BATCH, NEGATIVES)

        optimizer.zero_grad()
        loss = model(center, positive, negative)
        loss.backward()
        optimizer.step()

        running += loss.item()
        if step % 20 == 0:
            print(f"step {step:5d}  loss {running / 20:.4f}  {time.time() - start:.1f}s")
            running = 0.0


if __name__ == "__main__":
    main()
