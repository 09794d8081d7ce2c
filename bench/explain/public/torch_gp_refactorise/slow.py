"""Active learning with a Gaussian process: scan a large candidate pool for the most uncertain points."""
import time

import torch

torch.manual_seed(9)

TRAIN, FEATURES = 1800, 6
POOL_BATCHES, POOL_BATCH = 220, 32


class GaussianProcess:
    def __init__(self, x, y, length=1.5, noise=0.05):
        self.x, self.y = x, y
        self.length, self.noise = length, noise

    def kernel(self, a, b):
        d = torch.cdist(a, b) / self.length
        return torch.exp(-0.5 * d * d)

    def predict(self, query):
        k = self.kernel(self.x, self.x)
        k.diagonal().add_(self.noise)
        chol = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(self.y.unsqueeze(1), chol).squeeze(1)
        cross = self.kernel(self.x, query)
        mean = cross.t() @ alpha
        v = torch.linalg.solve_triangular(chol, cross, upper=False)
        var = 1.0 - v.square().sum(0)
        return mean, var


def target(x):
    return torch.sin(x[:, 0] * 2) + 0.5 * x[:, 1] * x[:, 2] - 0.3 * x[:, 3].square()


x = torch.randn(TRAIN, FEATURES)
y = target(x) + 0.1 * torch.randn(TRAIN)
gp = GaussianProcess(x, y)

best_var, best_point, error = -1.0, None, 0.0
start = time.time()
for i in range(1, POOL_BATCHES + 1):
    pool = torch.randn(POOL_BATCH, FEATURES) * 1.3
    mean, var = gp.predict(pool)
    error += (mean - target(pool)).abs().mean().item()
    top = var.argmax()
    if var[top].item() > best_var:
        best_var, best_point = var[top].item(), pool[top]
    if i % 25 == 0:
        print(f"batch {i} error {error / i:.3f} max var {best_var:.4f} {i / (time.time() - start):.1f} batches/s")

print("next point to label:", [round(v, 3) for v in best_point.tolist()])
