"""WGAN with several critic updates per generator update on synthetic shapes."""
import time

import torch
import torch.nn as nn

torch.manual_seed(17)

LATENT, BATCH, SIZE = 64, 16, 32
CRITIC_STEPS = 5
ITERATIONS = 24


def up(cin, cout):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(cin, cout, 3, padding=1),
                         nn.InstanceNorm2d(cout), nn.ReLU(),
                         nn.Conv2d(cout, cout, 3, padding=1), nn.ReLU())


generator = nn.Sequential(
    nn.Linear(LATENT, 128 * 4 * 4), nn.Unflatten(1, (128, 4, 4)),
    up(128, 96), up(96, 64), up(64, 48), nn.Conv2d(48, 1, 3, padding=1), nn.Tanh(),
)
critic = nn.Sequential(
    nn.Conv2d(1, 24, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(24, 48, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(48, 64, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Flatten(), nn.Linear(64 * 4 * 4, 1),
)
g_opt = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
d_opt = torch.optim.RMSprop(critic.parameters(), lr=5e-5)


def real_images():
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    center = torch.randint(8, 24, (BATCH, 2, 1, 1))
    radius = torch.randint(3, 8, (BATCH, 1, 1))
    dist = ((yy - center[:, 0]) ** 2 + (xx - center[:, 1]) ** 2).float().sqrt()
    return ((dist < radius).float() * 2 - 1).unsqueeze(1)


start = time.time()
for it in range(1, ITERATIONS + 1):
    for _ in range(CRITIC_STEPS):
        real = real_images()
        with torch.no_grad():
            fake = generator(torch.randn(BATCH, LATENT))
        d_loss = critic(fake).mean() - critic(real).mean()
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-0.01, 0.01)

    g_loss = -critic(generator(torch.randn(BATCH, LATENT))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    if it % 4 == 0:
        print(f"iter {it}: d {d_loss.item():.5f} g {g_loss.item():.5f} {time.time() - start:.1f}s")
