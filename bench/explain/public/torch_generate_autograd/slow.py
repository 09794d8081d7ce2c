"""Sample text from a character language model and score it."""
import time

import torch
import torch.nn as nn

torch.manual_seed(21)

CHARS = 96
HIDDEN = 128
ROUNDS = 25
STREAMS = 64
LENGTH = 500


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CHARS, 64)
        self.rnn = nn.LSTM(64, HIDDEN, num_layers=2)
        self.decoder = nn.Linear(HIDDEN, CHARS)

    def forward(self, token, hidden=None):
        output, hidden = self.rnn(self.embed(token), hidden)
        return self.decoder(output[-1]), hidden

    def generate_text(self, prefix, number_of_characters, temperature=0.9):
        hidden = None
        token = torch.tensor(prefix).view(-1, 1).repeat(1, STREAMS)
        log_prob = 0.0
        picked = []
        for _ in range(number_of_characters):
            logits, hidden = self.forward(token, hidden)
            log_probs = torch.log_softmax(logits / temperature, dim=-1)
            choice = torch.multinomial(log_probs.exp(), 1)
            log_prob = log_prob + log_probs.gather(1, choice).squeeze(1)
            picked.append(choice)
            token = choice.view(1, -1)
        texts = ["".join(chr(32 + c) for c in prefix + row) for row in torch.cat(picked, 1).tolist()]
        return texts, log_prob / number_of_characters


model = CharLM()
model.eval()

for r in range(ROUNDS):
    start = time.time()
    texts, scores = model.generate_text([40, 41, 42], LENGTH)
    best = int(scores.argmax())
    print(f"round {r}: {texts[best][:30]!r} {scores[best].item():.3f} per char ({time.time() - start:.1f}s)")
