"""Generate token sequences with a small GPT (random weights, greedy decoding)."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)

VOCAB, DIM, HEADS, LAYERS = 512, 192, 6, 4
CONTEXT = 400
PROMPTS = 3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x, past=None):
        b, t, _ = x.shape
        q, k, v = (z.view(b, t, HEADS, DIM // HEADS).transpose(1, 2)
                   for z in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None and t > 1)
        return self.proj(y.transpose(1, 2).reshape(b, t, DIM)), (k, v)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, past=None):
        a, present = self.attn(self.ln1(x), past)
        x = x + a
        return x + self.mlp(self.ln2(x)), present


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, idx, pasts=None):
        offset = 0 if pasts is None else pasts[0][0].size(2)
        x = self.tok(idx) + self.pos(torch.arange(offset, offset + idx.size(1)))
        presents = []
        for i, block in enumerate(self.blocks):
            x, present = block(x, None if pasts is None else pasts[i])
            presents.append(present)
        return self.head(x), presents


@torch.no_grad()
def generate(model, prompt):
    tokens, choice, pasts = prompt, prompt, None
    while tokens.size(1) < CONTEXT:
        logits, pasts = model(choice, pasts)
        choice = logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, choice], 1)
    return tokens


model = GPT().eval()
for p in range(PROMPTS):
    start = time.time()
    out = generate(model, torch.randint(0, VOCAB, (1, 16)))
    print(f"prompt {p}: ends with {out[0, -5:].tolist()} ({time.time() - start:.1f}s)")
