"""The ResNet of recipes/resnet18_small.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self.stage(width, width, 1)
        self.layer2 = self.stage(width, 2 * width, 2)
        self.layer3 = self.stage(2 * width, 4 * width, 2)
        self.layer4 = self.stage(4 * width, 8 * width, 2)
        self.fc = nn.Linear(8 * width, classes)

    def stage(self, inputs, outputs, stride):
        return nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1))

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = F.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(x, 1))


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = ResNet().to(device)
    model.load_state_dict(load_file(weights), strict=False)  # num_batches_tracked
    optimizer = torch.optim.SGD(
        model.parameters(), lr=2e-4, momentum=0.9, weight_decay=1e-4
    )
    train_loop(bursts, model, optimizer, loss_of, load_data(data, "x", "y"), 32)
