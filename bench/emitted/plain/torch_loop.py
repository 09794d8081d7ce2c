"""What every plain script in PyTorch has: its data, its weights, the training loop."""

# mypy: ignore-errors

import torch
from safetensors.torch import load_file

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_data(path, *names):
    """The inputs by their names, in the dtypes that layers and losses take."""
    tensors = load_file(path)
    floats = {torch.float32, torch.uint8}
    return [
        (tensors[n].float() if tensors[n].dtype in floats else tensors[n].long()).to(
            device
        )
        for n in names
    ]


def train_loop(bursts, model, optimizer, loss_of, data, batch_size):
    batches = len(data[0]) // batch_size
    step = 0
    for steps in bursts:
        for _ in range(steps):
            i = step % batches * batch_size
            step += 1
            batch = [tensor[i : i + batch_size] for tensor in data]
            optimizer.zero_grad()
            loss = loss_of(model, *batch)
            loss.backward()
            optimizer.step()
        bursts.done(loss.item())
