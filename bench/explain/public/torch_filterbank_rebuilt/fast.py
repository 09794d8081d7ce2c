"""Keyword spotting on synthetic tones: log-mel features and a small conv net."""
import time

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(31)

SAMPLE_RATE, N_FFT, HOP, N_MELS = 16_000, 400, 160, 80
BATCH, CLASSES = 8, 6
STEPS = 800


def mel_filters(sr, n_fft, n_mels):
    def to_mel(hz):
        return 2595.0 * np.log10(1.0 + hz / 700.0)

    def to_hz(mel):
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)

    points = to_hz(np.linspace(to_mel(0.0), to_mel(sr / 2), n_mels + 2))
    freqs = np.linspace(0, sr / 2, n_fft // 2 + 1)
    weights = np.zeros((n_mels, len(freqs)), dtype=np.float32)
    for m in range(n_mels):
        left, center, right = points[m:m + 3]
        for k, f in enumerate(freqs):
            rising = (f - left) / (center - left)
            falling = (right - f) / (right - center)
            weights[m, k] = max(0.0, min(rising, falling))
    return torch.from_numpy(weights)


class FeatureExtractor:
    def __init__(self):
        self.window = torch.hann_window(N_FFT)
        self.filters = mel_filters(SAMPLE_RATE, N_FFT, N_MELS)

    def __call__(self, waveform):
        spec = torch.stft(waveform, N_FFT, HOP, window=self.window, return_complex=True).abs() ** 2
        return torch.log10((self.filters @ spec).clamp(min=1e-8))


def make_batch():
    labels = torch.randint(0, CLASSES, (BATCH,))
    t = torch.arange(SAMPLE_RATE // 2) / SAMPLE_RATE
    tone = torch.sin(2 * torch.pi * (300 + 350 * labels[:, None]) * t)
    return tone + 0.5 * torch.randn_like(tone), labels


extract = FeatureExtractor()
model = nn.Sequential(nn.Conv1d(N_MELS, 64, 3), nn.ReLU(), nn.Conv1d(64, 64, 3, stride=2), nn.ReLU(),
                      nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, CLASSES))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

start = time.time()
for step in range(1, STEPS + 1):
    waveform, labels = make_batch()
    logits = model(extract(waveform))
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        acc = (logits.argmax(1) == labels).float().mean().item()
        print(f"step {step} loss {loss.item():.3f} acc {acc:.2f} {time.time() - start:.1f}s")
