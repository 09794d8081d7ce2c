"""Sentence-pair style text classification with a small transformer encoder."""
import time

import torch
import torch.nn as nn

torch.manual_seed(23)

VOCAB, DIM, MAX_LEN, PAD = 3000, 96, 256, 0
BATCH = 16
STEPS = 90


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.pos = nn.Embedding(MAX_LEN, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, 3)

    def forward(self, ids):
        mask = ids == PAD
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1)))
        x = self.encoder(x, src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(-1)
        return self.head((x * keep).sum(1) / keep.sum(1))


def make_corpus(n=2000):
    texts, labels = [], []
    for _ in range(n):
        length = int(torch.randint(10, 41, (1,)))
        label = int(torch.randint(0, 3, (1,)))
        words = torch.randint(1, VOCAB, (length,))
        words[::4] = label * 900 + torch.randint(1, 900, (len(words[::4]),))
        texts.append(words)
        labels.append(label)
    return texts, torch.tensor(labels)


def encode(texts):
    ids = torch.full((len(texts), MAX_LEN), PAD)
    for row, words in enumerate(texts):
        ids[row, :len(words)] = words
    return ids


texts, labels = make_corpus()
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
start = time.time()
for step in range(1, STEPS + 1):
    pick = torch.randint(0, len(texts), (BATCH,))
    logits = model(encode([texts[i] for i in pick]))
    loss = nn.functional.cross_entropy(logits, labels[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}/{STEPS} loss {loss.item():.3f} {(time.time() - start) / step:.2f}s/step")
