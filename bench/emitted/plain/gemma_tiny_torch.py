"""Gemma of recipes/gemma_tiny.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop

WORDS, TOKENS, WIDTH, HEADS, SIZE, INNER, LAYERS = 256, 24, 64, 4, 16, 256, 2


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return F.rms_norm(x, (WIDTH,), eps=1e-6) * (1 + self.weight)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.k_proj = nn.Linear(WIDTH, SIZE, bias=False)
        self.v_proj = nn.Linear(WIDTH, SIZE, bias=False)
        self.o_proj = nn.Linear(HEADS * SIZE, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        def turned(x):
            first, second = x.chunk(2, -1)
            return x * cos + torch.cat([-second, first], -1) * sin

        def heads(x):
            return x.unflatten(-1, (-1, SIZE)).transpose(1, 2)

        q, k = turned(heads(self.q_proj(x))), turned(heads(self.k_proj(x)))
        h = F.scaled_dot_product_attention(
            q, k, heads(self.v_proj(x)), is_causal=True, enable_gqa=True
        )
        return self.o_proj(h.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = Norm()
        self.self_attn = Attention()
        self.post_attention_layernorm = Norm()
        self.mlp = nn.ModuleDict(
            {
                "gate_proj": nn.Linear(WIDTH, INNER, bias=False),
                "up_proj": nn.Linear(WIDTH, INNER, bias=False),
                "down_proj": nn.Linear(INNER, WIDTH, bias=False),
            }
        )

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        h = self.post_attention_layernorm(x)
        gate = F.gelu(self.mlp["gate_proj"](h), approximate="tanh")
        return x + self.mlp["down_proj"](gate * self.mlp["up_proj"](h))


class Gemma(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        rates = 10_000 ** (-torch.arange(0, SIZE, 2) / SIZE)
        angles = torch.outer(torch.arange(TOKENS), rates).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids):
        x = self.embed_tokens(ids) * WIDTH**0.5
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def loss_of(model, ids, y):
    return F.cross_entropy(model(ids).view(-1, WORDS), y.reshape(-1))


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = Gemma().to(device)
    held = {
        name.removeprefix("model."): w.flatten() if "norm" in name else w
        for name, w in load_file(weights).items()
        if "rotary" not in name
    }
    model.load_state_dict(held)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, eps=1e-7, weight_decay=0.01
    )
    inputs = load_data(data, "input_ids", "y")
    train_loop(bursts, model, optimizer, loss_of, inputs, 16)
