"""k-means codebook for speech-like frames."""
import time

import torch

torch.manual_seed(43)

FRAMES, DIM, CLUSTERS = 20_000, 64, 128
CHUNK = 5_000
ITERATIONS = 25


def make_frames():
    prototypes = torch.randn(CLUSTERS, DIM) * 3
    which = torch.randint(0, CLUSTERS, (FRAMES,))
    return prototypes[which] + torch.randn(FRAMES, DIM)


def assign(x, centers):
    distance = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(-1)
    best = distance.min(dim=1)
    return best.indices, best.values


def kmeans(frames):
    centers = frames[torch.randperm(len(frames))[:CLUSTERS]].clone()
    start = time.time()
    for it in range(1, ITERATIONS + 1):
        labels, inertia = [], 0.0
        for x in frames.split(CHUNK):
            idx, dist = assign(x, centers)
            labels.append(idx)
            inertia += dist.sum().item()
        labels = torch.cat(labels)
        sums = torch.zeros_like(centers).index_add_(0, labels, frames)
        counts = torch.bincount(labels, minlength=CLUSTERS).unsqueeze(1)
        centers = torch.where(counts > 0, sums / counts.clamp(min=1), centers)
        if it % 5 == 0:
            print(f"iteration {it}: inertia per frame {inertia / len(frames):.3f} {time.time() - start:.1f}s")
    return centers, labels


frames = make_frames()
with torch.no_grad():
    centers, labels = kmeans(frames)
print("largest cluster:", torch.bincount(labels).max().item())
