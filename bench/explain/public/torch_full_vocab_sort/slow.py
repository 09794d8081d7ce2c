"""Sample continuations from a small recurrent language model with top-k and nucleus filtering."""
import time

import torch
import torch.nn as nn

torch.manual_seed(5)

VOCAB, DIM = 128_000, 64
BATCH, NEW_TOKENS = 4, 350
TOP_K, TOP_P, TEMPERATURE = 50, 0.95, 0.9


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRUCell(DIM, DIM)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, token, hidden):
        hidden = self.rnn(self.embed(token), hidden)
        return self.head(hidden), hidden


def pick(logits):
    logits = logits / TEMPERATURE
    values, ids = torch.sort(logits, dim=-1, descending=True)
    values, ids = values[:, :TOP_K], ids[:, :TOP_K]
    probs = torch.softmax(values, dim=-1)
    outside = probs.cumsum(-1) - probs > TOP_P
    probs = probs.masked_fill(outside, 0.0)
    choice = torch.multinomial(probs, 1)
    return ids.gather(1, choice).squeeze(1)


model = TinyLM().eval()
token = torch.randint(0, VOCAB, (BATCH,))
hidden = torch.zeros(BATCH, DIM)
texts = [token]

start = time.time()
with torch.inference_mode():
    for step in range(1, NEW_TOKENS + 1):
        logits, hidden = model(token, hidden)
        token = pick(logits)
        texts.append(token)
        if step % 25 == 0:
            rate = BATCH * step / (time.time() - start)
            print(f"token {step}: {rate:.1f} tokens/s")

texts = torch.stack(texts, dim=1)
print("generated", tuple(texts.shape), "last ids", texts[:, -1].tolist())
