"""Augment speech clips with room reverberation before writing training features."""
import time

import torch
import torch.nn.functional as F

torch.manual_seed(8)

SAMPLE_RATE = 16_000
CLIP = 2 * SAMPLE_RATE
IR_LENGTH = 6000
BATCHES, BATCH = 100, 2


def fake_room():
    decay = torch.exp(-torch.arange(IR_LENGTH) / 1200.0)
    ir = torch.randn(IR_LENGTH) * decay
    ir[0] = 4.0
    return ir / ir.norm()


def fake_clips():
    t = torch.arange(CLIP) / SAMPLE_RATE
    pitch = 100 + 150 * torch.rand(BATCH, 1)
    voice = torch.sin(2 * torch.pi * pitch * t) + 0.1 * torch.randn(BATCH, CLIP)
    return voice * (0.6 + 0.4 * torch.sin(2 * torch.pi * 3 * t))


def reverb(clips, ir):
    padded = F.pad(clips.unsqueeze(1), (IR_LENGTH - 1, 0))
    wet = F.conv1d(padded, ir.flip(0).view(1, 1, -1))
    return wet.squeeze(1)


def features(clips):
    window = torch.hann_window(400)
    spec = torch.stft(clips, 400, hop_length=160, window=window, return_complex=True)
    return torch.log(spec.abs() + 1e-6)


rooms = [fake_room() for _ in range(10)]
total, frames = 0.0, 0
start = time.time()
for i in range(1, BATCHES + 1):
    clips = fake_clips()
    wet = reverb(clips, rooms[i % len(rooms)])
    wet = wet / wet.abs().amax(dim=1, keepdim=True)
    feats = features(wet)
    total += feats.mean().item()
    frames += feats.shape[0] * feats.shape[2]
    if i % 10 == 0:
        print(f"batch {i}/{BATCHES} mean {total / i:.3f} {frames / (time.time() - start):.0f} frames/s")
