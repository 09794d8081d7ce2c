"""Measure the prompt throughput of a small mixture-of-experts language model."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)

VOCAB, DIM, FF, LAYERS = 4000, 128, 512, 3
EXPERTS, TOP_K = 16, 2
BATCH, LENGTH, PROMPTS = 6, 64, 250


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(DIM, FF)
        self.down = nn.Linear(FF, DIM)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(DIM, EXPERTS, bias=False)
        self.experts = nn.ModuleList([Expert() for _ in range(EXPERTS)])

    def forward(self, x):
        flat = x.reshape(-1, DIM)
        weight, chosen = torch.topk(self.router(flat).softmax(dim=-1), TOP_K, dim=-1)
        weight = weight / weight.sum(dim=-1, keepdim=True)
        gates = torch.zeros(flat.shape[0], EXPERTS).scatter(1, chosen, weight)
        out = torch.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            out = out + gates[:, e:e + 1] * expert(flat)
        return out.view_as(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.mix = nn.Linear(DIM, DIM)
        self.norms = nn.ModuleList([nn.LayerNorm(DIM) for _ in range(LAYERS)])
        self.layers = nn.ModuleList([MoE() for _ in range(LAYERS)])
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        x = self.embed(tokens)
        past = x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1).unsqueeze(1)
        x = x + self.mix(past)
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        return self.head(x[:, -1])


model = Model().eval()
start, seen, check = time.time(), 0, 0.0
with torch.inference_mode():
    for i in range(1, PROMPTS + 1):
        tokens = torch.randint(0, VOCAB, (BATCH, LENGTH))
        logits = model(tokens)
        check += logits.max(dim=-1).values.mean().item()
        seen += tokens.numel()
        if i % 25 == 0:
            print(f"prompt batch {i} top logit {check / i:.4f} {seen / (time.time() - start):.0f} tokens/s")
