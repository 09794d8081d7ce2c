"""Skip-gram with negative sampling on a synthetic corpus, vectors kept inside the unit ball."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

VOCAB = 20000
DIM = 100
BATCH = 1024
NEGATIVES = 5
STEPS = 200
TOPICS = 50


class Corpus:
    """Words belong to topics; a word's context mostly comes from its own topic."""

    def __init__(self):
        self.topic = torch.randint(0, TOPICS, (VOCAB,))
        order = self.topic.argsort()
        self.members = order
        self.count = torch.bincount(self.topic, minlength=TOPICS)
        self.offset = self.count.cumsum(0) - self.count
        self.unigram = 1.0 / torch.arange(10, VOCAB + 10).float()

    def batch(self):
        center = torch.multinomial(self.unigram, BATCH, replacement=True)
        topic = self.topic[center]
        inside = self.offset[topic] + (torch.rand(BATCH) * self.count[topic]).long()
        context = self.members[inside]
        noise = torch.randint(0, VOCAB, (BATCH, NEGATIVES))
        return center, context, noise


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(VOCAB, DIM, max_norm=1.0)
        self.context = nn.Embedding(VOCAB, DIM, max_norm=1.0)
        nn.init.normal_(self.center.weight, std=0.1)
        nn.init.normal_(self.context.weight, std=0.1)
        self.scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, center, context, noise):
        v = self.center(center)
        u = self.context(context)
        n = self.context(noise)
        positive = self.scale * (v * u).sum(-1)
        negative = self.scale * torch.bmm(n, v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(positive) + F.logsigmoid(-negative).sum(1)).mean()


@torch.no_grad()
def topic_separation(model, corpus, n=2000):
    w = F.normalize(model.center.weight[:n], dim=1)
    sim = w @ w.T
    same = corpus.topic[:n, None] == corpus.topic[None, :n]
    return (sim[same].mean() - sim[~same].mean()).item()


def main():
    corpus = Corpus()
    model = SkipGram()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, foreach=True)
    start, running = time.time(), 0.0
    for step in range(1, STEPS + 1):
        center, context, noise = corpus.batch()
        loss = model(center, context, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if step % 40 == 0:
            print(f"step {step}: loss {running / 40:.4f}  {step / (time.time() - start):.1f} steps/s")
            running = 0.0
    largest = model.center.weight.norm(dim=1).max().item()
    print(f"largest norm {largest:.3f}, topic separation {topic_separation(model, corpus):.4f}")


if __name__ == "__main__":
    main()
