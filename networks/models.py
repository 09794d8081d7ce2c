"""Networks of published studies at a size that trains within a second a step: from the
library that people take them from, or, where no library has them, written here.

`scripts/networks` imports them; recipes/NAME.ir and NAME.toml are what it gives.
"""

from __future__ import annotations

import torch
from torch import nn


def gemma_tiny() -> nn.Module:
    """Gemma of transformers with 2 layers of 64: one head of keys, (1 + w) norms, a tied head."""
    from transformers import GemmaConfig, GemmaForCausalLM

    return GemmaForCausalLM(
        GemmaConfig(
            vocab_size=256, hidden_size=64, intermediate_size=256, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=1, head_dim=16,
            max_position_embeddings=64, use_cache=False,
        )
    )  # fmt: skip


def mistral_tiny() -> nn.Module:
    """Mistral of transformers with 2 layers of 64: grouped keys, a window of 8 words."""
    from transformers import MistralConfig, MistralForCausalLM

    return MistralForCausalLM(
        MistralConfig(
            vocab_size=256, hidden_size=64, intermediate_size=192, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, sliding_window=8,
            max_position_embeddings=64, use_cache=False,
        )
    )  # fmt: skip


def sam_encoder_tiny() -> nn.Module:
    """The picture encoder of SAM of transformers with 2 layers of 32: windows, relative positions."""
    from transformers import SamVisionConfig, SamVisionModel

    return SamVisionModel(
        SamVisionConfig(
            hidden_size=32, output_channels=16, num_hidden_layers=2,
            num_attention_heads=2, image_size=64, patch_size=8, window_size=4,
            global_attn_indexes=[1], mlp_dim=64,
        )
    )  # fmt: skip


def unet_tiny() -> nn.Module:
    """The UNet of Stable Diffusion, of diffusers, with 16 and 32 channels: cross attention, group norms."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=16, layers_per_block=1, block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24,
        attention_head_dim=4, norm_num_groups=8,
    )  # fmt: skip


class Translator(nn.Module):
    """torch.nn.Transformer between two tables, causal in the target."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.scale = width**0.5
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(32, width))
        self.transformer = nn.Transformer(width, 4, 2, 2, 4 * width, batch_first=True)
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.words.weight

    def _read(self, ids: torch.Tensor) -> torch.Tensor:
        return self.scale * self.words(ids) + self.places[: ids.shape[1]]

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        made = self.transformer(
            self._read(source), self._read(target), tgt_mask=later, tgt_is_causal=True
        )
        return self.out(made)


def transformer_tiny() -> nn.Module:
    """torch.nn.Transformer with 2 and 2 layers of 64, and one table for all words."""
    return Translator(200, 64)


class Gnmt(nn.Module):
    """Bidirectional and residual LSTMs, normed attention over the encoder's states."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.source, self.target = (
            nn.Embedding(words, width),
            nn.Embedding(words, width),
        )
        self.both = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.above = nn.LSTM(width, width, batch_first=True)
        self.first = nn.LSTM(width, width, batch_first=True)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.full((), width**-0.5))
        self.direction, self.shift = (
            nn.Parameter(torch.randn(width)),
            nn.Parameter(torch.zeros(width)),
        )
        self.second = nn.LSTM(2 * width, width, batch_first=True)
        self.third = nn.LSTM(2 * width, width, batch_first=True)
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(width, words)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        below = self.both(self.drop(self.source(source)))[0]
        memory = below + self.above(self.drop(below))[0]
        first = self.first(self.drop(self.target(target)))[0]
        sums = self.query(first)[:, :, None] + self.key(memory)[:, None] + self.shift
        direction = self.scale * self.direction / self.direction.norm()
        weights = torch.softmax((torch.tanh(sums) * direction).sum(-1), -1)
        seen = weights @ memory
        second = self.second(self.drop(torch.cat((first, seen), -1)))[0]
        third = second + self.third(self.drop(torch.cat((second, seen), -1)))[0]
        return self.out(third)


def gnmt_tiny() -> nn.Module:
    """GNMT with three LSTMs of 64 on each side and normed attention between them."""
    return Gnmt(200, 64)


class DeepSpeech2(nn.Module):
    """Convolutions of a spectrogram, recurrences in both directions, CTC."""

    def __init__(self, bands: int, width: int, letters: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 8, (11, 5), (2, 2), (5, 2), bias=False), nn.BatchNorm2d(8),
            nn.Hardtanh(0, 20),
            nn.Conv2d(8, 8, (11, 5), (1, 2), (5, 2), bias=False), nn.BatchNorm2d(8),
            nn.Hardtanh(0, 20),
        )  # fmt: skip
        inputs = 8 * (bands // 4)
        self.lstm = nn.LSTM(inputs, width, 2, batch_first=True, bidirectional=True)
        self.norm, self.out = nn.LayerNorm(2 * width), nn.Linear(2 * width, letters)

    def forward(self, spectrogram: torch.Tensor) -> torch.Tensor:
        x = self.convolutions(spectrogram[:, None]).transpose(1, 2).flatten(2)
        return self.out(self.norm(self.lstm(x)[0]))


def deep_speech_2_tiny() -> nn.Module:
    """Deep Speech 2 with two convolutions and two LSTMs of 32 in both directions, and CTC."""
    return DeepSpeech2(20, 32, 29)
