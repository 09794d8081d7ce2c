"""A small CNN on pictures in memory, read through a Dataset and loader workers.

How the input of a published comparison was written; the pictures are random here.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    """Rows with the transforms that torchvision's MNIST makes for each of them."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.pictures = torch.randint(
            0, 256, (count, 28, 28), dtype=torch.uint8, generator=generator
        )
        self.labels = torch.randint(0, 10, (count,), generator=generator)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        picture = self.pictures[row].unsqueeze(0).float().div(255)
        return (picture - 0.1307) / 0.3081, int(self.labels[row])


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=41)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        Pictures(10_000), batch_size=256, shuffle=True, num_workers=args.workers
    )
    model = make_model()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
