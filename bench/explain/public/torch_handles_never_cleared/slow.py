"""Train a deep MLP and collect projected per-example gradients of its linear layers."""
import time

import torch
import torch.nn.functional as F
from torch import nn

DEPTH = 12
WIDTH = 48
N_CLASSES = 10
BATCH = 16
STEPS = 1900
PROJ = 8


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + 0.2 * torch.tanh(self.linear(self.norm(x)))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(20, WIDTH)
        self.blocks = nn.Sequential(*[Block(WIDTH) for _ in range(DEPTH)])
        self.out = nn.Linear(WIDTH, N_CLASSES)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x)))


class GradientCollector:
    """Used as a context manager around the forward and backward pass of one batch."""

    def __init__(self, model, proj_dim, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.targets = {n: m for n, m in model.named_modules() if n.endswith("linear")}
        self.left = {n: torch.randn(m.out_features, proj_dim, generator=gen) for n, m in self.targets.items()}
        self.right = {n: torch.randn(m.in_features, proj_dim, generator=gen) for n, m in self.targets.items()}
        self._fwd_hooks = []
        self._bwd_hooks = []
        self.inputs = {}
        self.mod_grads = {}

    def __enter__(self):
        for name, module in self.targets.items():
            fwd = module.register_forward_hook(self._save_input(name))
            bwd = module.register_full_backward_hook(self._process_grad(name))
            self._fwd_hooks.append(fwd)
            self._bwd_hooks.append(bwd)
        return self

    def _save_input(self, name):
        def hook(module, inp, out):
            self.inputs[name] = inp[0].detach() @ self.right[name]
        return hook

    def _process_grad(self, name):
        def hook(module, grad_in, grad_out):
            g = grad_out[0] @ self.left[name]
            self.mod_grads[name] = torch.einsum("bi,bj->bij", g, self.inputs.pop(name)).flatten(1)
        return hook

    def __exit__(self, exc_type, exc, tb):
        for h in self._fwd_hooks:
            h.remove()
        for h in self._bwd_hooks:
            h.remove()

    def flush(self):
        grads = torch.cat([self.mod_grads[n] for n in self.targets], dim=1)
        self.mod_grads.clear()
        return grads


def make_data(n=4096):
    gen = torch.Generator().manual_seed(123)
    x = torch.randn(n, 20, generator=gen)
    w = torch.randn(20, N_CLASSES, generator=gen)
    y = (torch.sin(x) @ w).argmax(dim=1)
    return x, y


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = make_data()
    model = MLP()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    collector = GradientCollector(model, PROJ)
    norms = torch.zeros(len(x))

    tic = time.time()
    for step in range(STEPS):
        idx = torch.arange(step * BATCH, (step + 1) * BATCH) % len(x)
        with collector:
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
        norms[idx] = collector.flush().norm(dim=1)
        opt.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {loss.item():.4f} grad norm {norms[idx].mean():.5f} [{time.time() - tic:.1f}s]")


if __name__ == "__main__":
    main()
