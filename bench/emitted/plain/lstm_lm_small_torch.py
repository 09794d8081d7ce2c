"""The language model of recipes/lstm_lm_small.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop

DROPOUT = 0.5


class LanguageModel(nn.Module):
    def __init__(self, words=500, units=64):
        super().__init__()
        self.tokens = nn.Embedding(words, units)
        self.lstm1 = nn.LSTM(units, units, batch_first=True)
        self.lstm2 = nn.LSTM(units, units, batch_first=True)
        self.decoder = nn.Linear(units, words)
        self.drop = nn.Dropout(DROPOUT)
        for lstm in (self.lstm1, self.lstm2):  # one bias is enough
            nn.init.zeros_(lstm.bias_hh_l0)
            lstm.bias_hh_l0.requires_grad_(False)

    def forward(self, tokens):
        x = self.drop(self.tokens(tokens))
        x, _ = self.lstm1(x)
        x, _ = self.lstm2(self.drop(x))
        return self.decoder(self.drop(x))


def loss_of(model, tokens, labels):
    logits = model(tokens)
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.reshape(-1))


def train(bursts: Bursts, data: str, weights: str) -> None:
    torch.manual_seed(1)
    model = LanguageModel().to(device)
    model.load_state_dict(load_file(weights), strict=False)  # without bias_hh_l0
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.5)
    inputs = load_data(data, "tokens", "labels")
    train_loop(bursts, model, optimizer, loss_of, inputs, 16)
