"""Fine-tune a small sentence classifier on a tokenised corpus."""
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

random.seed(13)
torch.manual_seed(13)

VOCAB = 4000
MAX_LEN = 256
CLASSES = 4
N_DOCS = 6400
BATCH = 64
EPOCHS = 7


class FakeTokenizer:
    """Stands in for a real tokenizer: returns plain python lists, padded to max_length."""

    pad_id = 0

    def __call__(self, topic):
        length = random.randint(MAX_LEN // 2, MAX_LEN)
        base = 1 + topic * 700
        ids = [random.randint(base, base + 1500) for _ in range(length)]
        pad = MAX_LEN - length
        return {
            "input_ids": ids + [self.pad_id] * pad,
            "attention_mask": [1] * length + [0] * pad,
            "token_type_ids": [0] * MAX_LEN,
        }


class EncodedCorpus(Dataset):
    def __init__(self, n_docs):
        tokenizer = FakeTokenizer()
        self.rows = []
        for _ in range(n_docs):
            topic = random.randrange(CLASSES)
            row = tokenizer(topic)
            row["label"] = topic
            self.rows.append(row)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return {
            "input_ids": row["input_ids"],
            "attention_mask": row["attention_mask"],
            "token_type_ids": row["token_type_ids"],
            "label": row["label"],
        }


class Classifier(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.types = nn.Embedding(2, dim)
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, CLASSES))

    def forward(self, ids, mask, types):
        x = self.words(ids) + self.types(types)
        mask = mask.unsqueeze(-1).float()
        pooled = (x * mask).sum(1) / mask.sum(1)
        return self.mix(pooled)


def to_batch(batch):
    """the loader hands over one tensor per position: put them back together"""
    ids = torch.stack(batch["input_ids"], dim=1)
    mask = torch.stack(batch["attention_mask"], dim=1)
    types = torch.stack(batch["token_type_ids"], dim=1)
    return ids, mask, types, batch["label"]


def main():
    corpus = EncodedCorpus(N_DOCS)
    loader = DataLoader(corpus, batch_size=BATCH, shuffle=True)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, start = 0, time.time()
    for epoch in range(EPOCHS):
        correct = seen = 0
        for batch in loader:
            ids, mask, types, labels = to_batch(batch)
            logits = model(ids, mask, types)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (logits.argmax(1) == labels).sum().item()
            seen += len(labels)
            step += 1
            if step % 100 == 0:
                print(f"step {step}: loss {loss.item():.4f}, "
                      f"{1000 * (time.time() - start) / step:.1f} ms/step")
        print(f"epoch {epoch}: accuracy {correct / seen:.3f}")


if __name__ == "__main__":
    main()
