"""Trains crowd with PyTorch."""

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


class Crowd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(144, 4, bias=False)

    def forward(
        self,
        a_picture_of_channel: Tensor,
        a_picture_of_channel_2: Tensor,
        a_picture_of_channel_3: Tensor,
        a_picture_of_channel_4: Tensor,
        a_picture_of_channel_5: Tensor,
        a_picture_of_channel_6: Tensor,
        a_picture_of_channel_7: Tensor,
        a_picture_of_channel_8: Tensor,
        a_picture_of_channel_9: Tensor,
    ) -> Tensor:
        x = a_picture_of_channel.flatten(1)
        h = a_picture_of_channel_2.flatten(1)
        u = a_picture_of_channel_3.flatten(1)
        w = a_picture_of_channel_4.flatten(1)
        z = a_picture_of_channel_5.flatten(1)
        h_2 = a_picture_of_channel_6.flatten(1)
        h_3 = a_picture_of_channel_7.flatten(1)
        h_4 = a_picture_of_channel_8.flatten(1)
        h_5 = a_picture_of_channel_9.flatten(1)
        x = torch.cat(
            (x, h, u, w, z, h_2, h_3, h_4, h_5, x, h, u, w, z, h_2, h_3), dim=1
        )
        return self.head(x)


def make_model() -> nn.Module:
    model = Crowd()
    model.to(device, memory_format=torch.channels_last)
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    a_picture_of_channel: Tensor,
    a_picture_of_channel_2: Tensor,
    a_picture_of_channel_3: Tensor,
    a_picture_of_channel_4: Tensor,
    a_picture_of_channel_5: Tensor,
    a_picture_of_channel_6: Tensor,
    a_picture_of_channel_7: Tensor,
    a_picture_of_channel_8: Tensor,
    a_picture_of_channel_9: Tensor,
    y: Tensor,
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    prediction = model(
        a_picture_of_channel,
        a_picture_of_channel_2,
        a_picture_of_channel_3,
        a_picture_of_channel_4,
        a_picture_of_channel_5,
        a_picture_of_channel_6,
        a_picture_of_channel_7,
        a_picture_of_channel_8,
        a_picture_of_channel_9,
    )
    loss = F.cross_entropy(prediction, y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, ...]:
    tensors = load_file(path)
    a_picture_of_channel = tensors["a_picture_of_channel_number_0"].float()
    a_picture_of_channel_2 = tensors["a_picture_of_channel_number_1"].float()
    a_picture_of_channel_3 = tensors["a_picture_of_channel_number_2"].float()
    a_picture_of_channel_4 = tensors["a_picture_of_channel_number_3"].float()
    a_picture_of_channel_5 = tensors["a_picture_of_channel_number_4"].float()
    a_picture_of_channel_6 = tensors["a_picture_of_channel_number_5"].float()
    a_picture_of_channel_7 = tensors["a_picture_of_channel_number_6"].float()
    a_picture_of_channel_8 = tensors["a_picture_of_channel_number_7"].float()
    a_picture_of_channel_9 = tensors["a_picture_of_channel_number_8"].float()
    y = tensors["y"].long()
    return (
        a_picture_of_channel,
        a_picture_of_channel_2,
        a_picture_of_channel_3,
        a_picture_of_channel_4,
        a_picture_of_channel_5,
        a_picture_of_channel_6,
        a_picture_of_channel_7,
        a_picture_of_channel_8,
        a_picture_of_channel_9,
        y,
    )


def batches(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Endless batches, shuffled anew in each epoch."""
    if len(tensors[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    data = TensorDataset(*tensors)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    while True:
        for (
            a_picture_of_channel,
            a_picture_of_channel_2,
            a_picture_of_channel_3,
            a_picture_of_channel_4,
            a_picture_of_channel_5,
            a_picture_of_channel_6,
            a_picture_of_channel_7,
            a_picture_of_channel_8,
            a_picture_of_channel_9,
            y,
        ) in loader:
            yield (
                a_picture_of_channel.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_2.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_3.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_4.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_5.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_6.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_7.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_8.to(device, memory_format=torch.channels_last),
                a_picture_of_channel_9.to(device, memory_format=torch.channels_last),
                y.to(device),
            )


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
