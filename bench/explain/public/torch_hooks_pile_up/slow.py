"""Build an image index: take intermediate features of every image with forward hooks."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)

IMAGES, SIZE = 800, 32


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.layer2 = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.layer3 = nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.flatten(1))


def extract(model, image, wanted=("layer1", "layer2", "layer3")):
    features = {}

    def make_hook(name):
        def hook(module, inputs, output):
            features[name] = F.adaptive_avg_pool2d(output, 1).flatten(1).clone()
        return hook

    for name in wanted:
        getattr(model, name).register_forward_hook(make_hook(name))
    scores = model(image)
    return torch.cat([features[name] for name in wanted], dim=1), scores.argmax(1).item()


model = Net().eval()
index, counts = [], [0] * 10
start = time.time()
with torch.no_grad():
    for i in range(1, IMAGES + 1):
        image = torch.rand(1, 3, SIZE, SIZE)
        vector, label = extract(model, image)
        index.append(F.normalize(vector, dim=1))
        counts[label] += 1
        if i % 100 == 0:
            print(f"{i}/{IMAGES} images, {i / (time.time() - start):.1f} images/s")

index = torch.cat(index)
nearest = (index @ index[0]).topk(5).indices.tolist()
print("index", tuple(index.shape), "nearest to the first:", nearest, "labels", counts)
