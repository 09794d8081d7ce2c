import time
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 29
SIZE = 64
OCTAVES = 3
ITERATIONS = 34

torch.manual_seed(SEED)
gen = torch.Generator().manual_seed(SEED)


class SmallVGG(nn.Module):
    def __init__(self, classes=200):
        super().__init__()
        blocks, cin = [], 3
        for cout in (16, 32, 64, 96):
            blocks += [nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            cin = cout
        self.features = nn.Sequential(*blocks)
        self.classifier = nn.Sequential(
            nn.Linear(96 * 4 * 4, 4096), nn.ReLU(),
            nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, classes),
        )
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(x.flatten(1))


class Dreamer:
    def __init__(self, model):
        self.model = model.eval()

    def objective(self, image, unit):
        logits = self.model(image)
        tv = (image[..., 1:] - image[..., :-1]).abs().mean()
        tv = tv + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()
        return logits[0, unit] - 2.0 * tv

    def climb(self, image, unit, iterations, lr):
        image = image.detach().clone().requires_grad_(True)
        score = None
        for i in range(iterations):
            dy = int(torch.randint(-4, 5, (1,), generator=gen))
            dx = int(torch.randint(-4, 5, (1,), generator=gen))
            shifted = torch.roll(image, (dy, dx), (2, 3))
            score = self.objective(shifted, unit)
            score.backward()
            with torch.no_grad():
                step = image.grad / (image.grad.abs().mean() + 1e-8)
                image += lr * step
                image.clamp_(-2.5, 2.5)
                image.grad = None
        return image.detach(), score.item()

    def dream(self, image, unit):
        score = 0.0
        for octave in range(OCTAVES):
            blurred = F.avg_pool2d(image, 3, stride=1, padding=1)
            image = image + 0.3 * (image - blurred)
            image, score = self.climb(image, unit, ITERATIONS, lr=0.01 / (octave + 1))
        return image, score


model = SmallVGG()
dreamer = Dreamer(model)

start = time.time()
for n, unit in enumerate((3, 41, 97, 150, 188), 1):
    seed_image = 0.2 * torch.randn(1, 3, SIZE, SIZE, generator=gen)
    image, score = dreamer.dream(seed_image, unit)
    print(f"dream {n}  unit {unit:3d}  score {score:.4f}  std {float(image.std()):.4f}  "
          f"{time.time() - start:.1f}s", flush=True)
