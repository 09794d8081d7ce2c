import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)

N_CLASSES = 6
BATCH = 48
SEQ = 24
VOCAB = 400
STEPS = 400
TEMPERATURE = 0.3


def make_data(n=4096):
    g = torch.Generator().manual_seed(4)
    labels = torch.randint(0, N_CLASSES, (n,), generator=g)
    topic = torch.randint(0, VOCAB, (N_CLASSES, 40), generator=g)
    tokens = torch.randint(0, VOCAB, (n, SEQ), generator=g)
    hit = torch.rand(n, SEQ, generator=g) < 0.3
    pick = torch.randint(0, 40, (n, SEQ), generator=g)
    tokens = torch.where(hit, topic[labels][torch.arange(n)[:, None], pick], tokens)
    return tokens, labels


class Encoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.cls = nn.Linear(dim, N_CLASSES)

    def forward(self, tokens):
        pooled = self.mix(self.embed(tokens)).mean(dim=1)
        return F.normalize(pooled, dim=1), self.cls(pooled)


class WeightNet(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.out = nn.Linear(dim, N_CLASSES)

    def forward(self, tokens):
        return self.out(self.embed(tokens).mean(dim=1))


def contrastive(features, labels, class_weights):
    n = len(labels)
    logits = features @ features.T / TEMPERATURE
    logits = logits - logits.max(dim=1, keepdim=True).values.detach()
    not_self = 1.0 - torch.eye(n)
    same = (labels[:, None] == labels[None, :]).float() * not_self

    weighted_mask = torch.empty_like(logits)
    for i in range(n):
        for j in range(n):
            weighted_mask[i, j] = class_weights[i, labels[j]]
    weighted_mask = weighted_mask * not_self

    denom = (torch.exp(logits) * weighted_mask).sum(dim=1, keepdim=True)
    log_prob = logits - torch.log(denom + 1e-8)
    per_row = (same * log_prob).sum(dim=1) / same.sum(dim=1).clamp(min=1)
    return -per_row.mean()


def main():
    tokens, labels = make_data()
    encoder, weigher = Encoder(), WeightNet()
    optimizer = torch.optim.AdamW(
        list(encoder.parameters()) + list(weigher.parameters()), lr=1e-3)

    start = time.time()
    for step in range(STEPS):
        rows = torch.randint(0, len(labels), (BATCH,))
        x, y = tokens[rows], labels[rows]
        features, logits = encoder(x)
        guess = weigher(x)
        class_weights = guess.softmax(dim=1).detach()
        loss = (F.cross_entropy(logits, y) + F.cross_entropy(guess, y)
                + 0.5 * contrastive(features, y, class_weights))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"final loss {loss.item():.4f} in {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
