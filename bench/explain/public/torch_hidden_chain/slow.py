import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

VOCAB = 50
EMBED = 32
HIDDEN = 96
ROWS = 16
CHUNK = 16
CHUNKS_PER_STORY = 40
STORIES = 24


def make_corpus(n_tokens):
    g = torch.Generator().manual_seed(5)
    jump = torch.randint(0, VOCAB, (VOCAB, 3), generator=g)
    tokens = torch.empty(ROWS, n_tokens, dtype=torch.int64)
    cur = torch.randint(0, VOCAB, (ROWS,), generator=g)
    for t in range(n_tokens):
        tokens[:, t] = cur
        pick = torch.randint(0, 3, (ROWS,), generator=g)
        cur = jump[cur, pick]
    return tokens


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, EMBED)
        self.lstm = nn.LSTM(EMBED, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, x, hidden):
        out, hidden = self.lstm(self.embed(x), hidden)
        return self.head(out), hidden

    def init_hidden(self):
        zeros = torch.zeros(1, ROWS, HIDDEN)
        return zeros, zeros.clone()


def main():
    corpus = make_corpus(STORIES * CHUNKS_PER_STORY * CHUNK + 1)
    model = CharModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    start = time.time()
    pos = 0
    for story in range(STORIES):
        hidden = model.init_hidden()
        optimizer.zero_grad()
        total = 0.0
        for chunk in range(CHUNKS_PER_STORY):
            x = corpus[:, pos:pos + CHUNK]
            y = corpus[:, pos + 1:pos + CHUNK + 1]
            pos += CHUNK
            logits, hidden = model(x, hidden)
            loss = F.cross_entropy(logits.reshape(-1, VOCAB), y.reshape(-1))
            (loss / CHUNKS_PER_STORY).backward(retain_graph=True)
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"story {story} loss {total / CHUNKS_PER_STORY:.4f} elapsed {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
