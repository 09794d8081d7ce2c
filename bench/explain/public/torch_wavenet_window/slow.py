"""Sample audio from a small WaveNet, one sample after the other."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

LEVELS = 64
CHANNELS = 32
SKIP = 64
DILATIONS = [1, 2, 4, 8, 16, 32, 64, 128] * 2
SAMPLES = 1600


class ResidualLayer(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.dilation = dilation
        self.conv = nn.Conv1d(CHANNELS, 2 * CHANNELS, 2, dilation=dilation)
        self.res = nn.Conv1d(CHANNELS, CHANNELS, 1)
        self.skip = nn.Conv1d(CHANNELS, SKIP, 1)

    def gate(self, z):
        a, b = z.chunk(2, dim=1)
        return torch.tanh(a) * torch.sigmoid(b)

    def forward(self, x):
        h = self.gate(self.conv(F.pad(x, (self.dilation, 0))))
        return x + self.res(h), self.skip(h)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(LEVELS, CHANNELS)
        self.layers = nn.ModuleList(ResidualLayer(d) for d in DILATIONS)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(SKIP, SKIP, 1), nn.ReLU(),
                                  nn.Conv1d(SKIP, LEVELS, 1))
        self.receptive_field = sum(DILATIONS) + 1

    def forward(self, codes):
        x = self.embed(codes).transpose(1, 2)
        total = 0
        for layer in self.layers:
            x, skip = layer(x)
            total = total + skip
        return self.head(total)


def mu_law(x):
    mu = LEVELS - 1
    y = torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)
    return ((y + 1) / 2 * mu + 0.5).long()


def tone(n, batch):
    t = torch.arange(n).float()
    freq = 0.02 + 0.05 * torch.rand(batch, 1)
    return mu_law(0.8 * torch.sin(freq * t))


def train(model, steps=6):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(1, steps + 1):
        codes = tone(600, 2)
        loss = F.cross_entropy(model(codes[:, :-1]), codes[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"train step {step}: loss {loss.item():.4f}")


@torch.no_grad()
def generate(model, prompt, n):
    model.eval()
    codes = prompt
    nll, start = 0.0, time.time()
    for i in range(1, n + 1):
        window = codes[:, -model.receptive_field:]
        logits = model(window)[:, :, -1]
        probs = F.softmax(logits, dim=1)
        nxt = torch.multinomial(probs, 1)
        nll -= probs.gather(1, nxt).log().mean().item()
        codes = torch.cat([codes, nxt], dim=1)
        if i % 200 == 0:
            print(f"{i} samples, nll {nll / i:.4f}, {i / (time.time() - start):.1f} samples/s")
    return codes


def main():
    model = WaveNet()
    train(model)
    out = generate(model, tone(model.receptive_field, 1), SAMPLES)
    print("generated", tuple(out.shape), "mean code", out.float().mean().item())


if __name__ == "__main__":
    main()
