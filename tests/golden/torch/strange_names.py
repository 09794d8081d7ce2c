"""Trains lambda.1 with PyTorch."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 1000
LEARNING_RATE = 0.001

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)


class Lambda1(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = nn.ModuleDict({"in": nn.Linear(4, 4)})
        self.add_module("0", blocks)
        blocks = nn.ModuleDict(
            {
                "shift": nn.Module(),
            }
        )
        self.add_module("1", blocks)
        getattr(self, "1").kernel = nn.Parameter(torch.empty(4, 4))
        nn.init.kaiming_uniform_(getattr(self, "1").kernel, a=5**0.5)
        getattr(self, "1").shift.register_parameter("0", nn.Parameter(torch.empty(4)))
        nn.init.uniform_(getattr(getattr(self, "1").shift, "0"), -(4**-0.5), 4**-0.5)
        self.scale = nn.Parameter(torch.ones(4))
        self.shift = nn.Parameter(torch.zeros(4))

    def forward(self, model_2: Tensor, class_2: Tensor) -> tuple[Tensor, Tensor]:
        x = getattr(self, "0")["in"](model_2)
        h = F.linear(
            class_2, getattr(self, "1").kernel, getattr(getattr(self, "1").shift, "0")
        )
        h = F.relu(h)
        _ = x + h
        x = x + model_2
        x = x * h
        h = F.layer_norm(
            h, normalized_shape=(4,), weight=self.scale, bias=self.shift, eps=1e-5
        )
        return x, h


def make_model() -> nn.Module:
    model = Lambda1()
    model.to(device)
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    model_2: Tensor,
    class_2: Tensor,
    unused: Tensor,
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    prediction, target = model(model_2, class_2)
    loss = F.mse_loss(prediction, target)
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    tensors = load_file(path)
    model_2 = tensors["model"].float()
    class_2 = tensors["class"].float()
    unused = tensors["unused"].long()
    return model_2, class_2, unused


def batches(*tensors: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches, shuffled anew in each epoch."""
    if len(tensors[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    data = TensorDataset(*tensors)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    while True:
        for model_2, class_2, unused in loader:
            yield model_2.to(device), class_2.to(device), unused.to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = make_model()
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(model, optimizer, *batch)
        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
