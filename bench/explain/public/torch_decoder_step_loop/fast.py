"""Toy chatbot: encoder-decoder trained with teacher forcing to reverse token strings."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

VOCAB, HIDDEN = 400, 96
LENGTH, BATCH = 40, 32
STEPS = 300
SOS = 0


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.rnn = nn.GRU(HIDDEN, HIDDEN)

    def forward(self, src):
        _, hidden = self.rnn(self.embed(src))
        return hidden


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.rnn = nn.GRU(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, VOCAB)

    def loss(self, hidden, inputs, targets):
        emb = self.embed(inputs)
        outputs, _ = self.rnn(emb, hidden)
        logits = self.out(outputs)
        return F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))


encoder, decoder = Encoder(), Decoder()
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(params, lr=1e-3)

for step in range(1, STEPS + 1):
    src = torch.randint(1, VOCAB, (LENGTH, BATCH))
    tgt = src.flip(0)
    inputs = torch.cat([torch.full((1, BATCH), SOS), tgt[:-1]])

    optimizer.zero_grad()
    loss = decoder.loss(encoder(src), inputs, tgt)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()

    if step % 50 == 0:
        print(f"iteration {step}: loss {loss.item():.4f}")
