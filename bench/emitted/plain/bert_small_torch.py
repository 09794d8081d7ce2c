"""The encoder of recipes/bert_small.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop

WORDS, POSITIONS, WIDTH, HEADS, INNER, LAYERS = 500, 32, 64, 4, 256, 2
DROPOUT = 0.1


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.drop = nn.Dropout(DROPOUT)

    def heads(self, x):
        return x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = (self.heads(f(x)) for f in (self.query, self.key, self.value))
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        h = h.transpose(1, 2).flatten(2)
        return self.norm(x + self.drop(self.output(h)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.intermediate = nn.Linear(WIDTH, INNER)
        self.output = nn.Linear(INNER, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x, mask):
        x = self.attention(x, mask)
        h = self.output(F.gelu(self.intermediate(x)))
        return self.norm(x + self.drop(h))


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(WORDS, WIDTH)
        self.token_type = nn.Embedding(2, WIDTH)
        self.position = nn.Embedding(POSITIONS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, tokens, types):
        x = self.word(tokens) + self.token_type(types)
        return self.drop(self.norm(x + self.position.weight[: tokens.shape[1]]))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = Embeddings()
        self.encoder = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.ModuleDict(
            {"dense": nn.Linear(WIDTH, WIDTH), "norm": nn.LayerNorm(WIDTH, eps=1e-12)}
        )
        self.decoder_bias = nn.Parameter(torch.zeros(WORDS))

    def forward(self, tokens, types, last):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        mask = (places <= last[:, None])[:, None, None]
        x = self.embeddings(tokens, types)
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.head["norm"](F.gelu(self.head["dense"](x)))
        return F.linear(x, self.embeddings.word.weight, self.decoder_bias)


def loss_of(model, tokens, types, last, labels):
    logits = model(tokens, types, last)
    return F.cross_entropy(logits.view(-1, WORDS), labels.reshape(-1))


def train(bursts: Bursts, data: str, weights: str) -> None:
    torch.manual_seed(1)
    model = Bert().to(device)
    model.load_state_dict(load_file(weights))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.01
    )
    inputs = load_data(data, "tokens", "token_types", "last", "labels")
    train_loop(bursts, model, optimizer, loss_of, inputs, 16)
