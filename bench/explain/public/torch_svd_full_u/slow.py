"""Split video clips into background and moving objects with a low-rank approximation."""
import time

import torch

torch.manual_seed(23)

HEIGHT, WIDTH, FRAMES = 30, 40, 40
CLIPS, RANK = 700, 3


def fake_clip():
    ys = torch.arange(HEIGHT).view(-1, 1)
    xs = torch.arange(WIDTH).view(1, -1)
    scene = torch.rand(HEIGHT, WIDTH)
    light = 1.0 + 0.1 * torch.sin(torch.arange(FRAMES) / 7.0)
    clip = light.view(-1, 1, 1) * scene
    x0, speed = torch.rand(2)
    for t in range(FRAMES):
        cx = (x0 * WIDTH + speed * t) % WIDTH
        clip[t] += ((ys - 15) ** 2 + (xs - cx) ** 2 < 16).float()
    return clip + 0.02 * torch.randn(FRAMES, HEIGHT, WIDTH)


def split(clip):
    matrix = clip.reshape(FRAMES, -1).t()
    u, s, vh = torch.linalg.svd(matrix)
    background = (u[:, :RANK] * s[:RANK]) @ vh[:RANK]
    moving = (matrix - background).abs() > 0.3
    energy = s[:RANK].square().sum() / s.square().sum()
    return background.t().reshape_as(clip), moving.t().reshape(clip.shape), energy.item()


start = time.time()
total_energy, total_moving = 0.0, 0.0
for i in range(1, CLIPS + 1):
    clip = fake_clip()
    background, moving, energy = split(clip)
    total_energy += energy
    total_moving += moving.float().mean().item()
    if i % 50 == 0:
        rate = i / (time.time() - start)
        print(f"clip {i}/{CLIPS} energy {total_energy / i:.4f} moving {total_moving / i:.4f} {rate:.1f} clips/s")
