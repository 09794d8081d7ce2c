"""Sentiment-like text classifier: subword tokens, mean-pooled embeddings and an MLP."""
import random
import re
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

random.seed(1)
torch.manual_seed(1)
rng = np.random.default_rng(1)

SYLLABLES = [a + b for a in "bcdfghjklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
MAX_LEN = 192
BATCH = 32
EPOCHS = 32
N_DOCS = 1600


def make_corpus(n_docs):
    words = ["".join(rng.choice(SYLLABLES, size=rng.integers(2, 6))) for _ in range(4000)]
    polarity = rng.standard_normal(len(words))
    texts, labels = [], []
    for _ in range(n_docs):
        ids = np.minimum(rng.zipf(1.3, size=rng.integers(90, 180)) - 1, len(words) - 1)
        ids = (ids * 7 + rng.integers(0, 200, size=len(ids))) % len(words)
        texts.append(" ".join(words[i].capitalize() if i % 5 == 0 else words[i] for i in ids) + ".")
        labels.append(int(polarity[ids].sum() > 0))
    return texts, labels


class SubwordTokenizer:
    """Greedy longest-match-first subword tokenizer."""

    def __init__(self, texts, size=3000):
        counts = {}
        for text in texts[:400]:
            for word in re.findall(r"\w+|[^\w\s]", text.lower()):
                for i in range(len(word)):
                    for j in range(i + 1, min(len(word), i + 6) + 1):
                        counts[word[i:j]] = counts.get(word[i:j], 0) + 1
        pieces = sorted(counts, key=lambda p: -counts[p] * len(p))[:size]
        letters = sorted({c for p in counts for c in p})
        self.vocab = {p: i for i, p in enumerate(["[PAD]", "[UNK]"] + letters + [p for p in pieces if len(p) > 1])}

    def encode(self, text):
        ids = []
        for word in re.findall(r"\w+|[^\w\s]", text.lower()):
            start = 0
            while start < len(word):
                end = len(word)
                while end > start + 1 and word[start:end] not in self.vocab:
                    end -= 1
                ids.append(self.vocab.get(word[start:end], 1))
                start = end
        return ids[:MAX_LEN] + [0] * (MAX_LEN - len(ids))


class Classifier(nn.Module):
    def __init__(self, vocab_size, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.fc = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        pooled = (self.embed(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.fc(pooled)


texts, labels = make_corpus(N_DOCS)
tokenizer = SubwordTokenizer(texts)


def collate(batch):
    ids = [tokenizer.encode(text) for text, _ in batch]
    return torch.tensor(ids), torch.tensor([label for _, label in batch])


examples = list(zip(texts, labels))
loader = DataLoader(examples, batch_size=BATCH, shuffle=True, collate_fn=collate)
model = Classifier(len(tokenizer.vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    t0 = time.time()
    losses = []
    for ids, target in loader:
        loss = loss_fn(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1}/{EPOCHS} loss {np.mean(losses):.4f} time {time.time() - t0:.2f}s", flush=True)
