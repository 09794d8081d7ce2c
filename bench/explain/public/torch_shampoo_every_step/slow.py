"""Shampoo on a small mixer-style MLP classifier (own implementation of the optimizer)."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)

TOKENS, DIM, CLASSES = 16, 128, 10
BATCH = 64
STEPS = 350


def inv_root(mat, p, eps=1e-6):
    """mat ** (-1 / p) of a symmetric positive matrix."""
    vals, vecs = torch.linalg.eigh(mat)
    vals = vals.clamp_min(0) + eps
    return (vecs * vals.pow(-1.0 / p)) @ vecs.T


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, momentum=0.9, eps=1e-3, decay=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum, eps=eps, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self._update(p, group)

    def _update(self, p, group):
        state, grad = self.state[p], p.grad
        if not state:
            state["step"] = 0
            state["buf"] = torch.zeros_like(p)
            if p.dim() == 2:
                state["stats"] = [group["eps"] * torch.eye(n) for n in p.shape]
                state["precond"] = [torch.eye(n) for n in p.shape]
        if p.dim() == 2:
            left, right = state["stats"]
            left.mul_(group["decay"]).add_(grad @ grad.T)
            right.mul_(group["decay"]).add_(grad.T @ grad)
            state["precond"] = [inv_root(m, 4) for m in (left, right)]
            update = state["precond"][0] @ grad @ state["precond"][1]
            update *= grad.norm() / (update.norm() + 1e-12)  # graft the SGD norm
        else:
            update = grad
        state["step"] += 1
        state["buf"].mul_(group["momentum"]).add_(update)
        p.add_(state["buf"], alpha=-group["lr"])


class MixerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.tokens = nn.Sequential(nn.Linear(TOKENS, 32), nn.GELU(), nn.Linear(32, TOKENS))
        self.channels = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.embed = nn.Linear(48, DIM)
        self.blocks = nn.Sequential(*[MixerBlock() for _ in range(depth)])
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)).mean(1))


def make_data(n=4096):
    centers = torch.randn(CLASSES, TOKENS, 48)
    y = torch.randint(0, CLASSES, (n,))
    return 0.15 * centers[y] + torch.randn(n, TOKENS, 48), y


def main():
    x, y = make_data()
    model = Mixer()
    optimizer = Shampoo(model.parameters(), lr=0.03)
    start = time.time()
    for step in range(1, STEPS + 1):
        idx = torch.randint(0, len(x), (BATCH,))
        logits = model(x[idx])
        loss = F.cross_entropy(logits, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            acc = (logits.argmax(1) == y[idx]).float().mean().item()
            print(f"step {step}: loss {loss.item():.4f} acc {acc:.3f} "
                  f"({step / (time.time() - start):.2f} it/s)")


if __name__ == "__main__":
    main()
