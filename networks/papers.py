"""The networks of models.py in the sizes of their papers, to be counted: `scripts/networks
--paper` imports them from parameters that take no memory."""

from __future__ import annotations

import models
from torch import nn


def inception_v3() -> nn.Module:
    from torchvision.models import inception_v3 as made

    return models.Inception(made(weights=None, init_weights=False))


def transformer_base() -> nn.Module:
    return models.Translator(37000, 512, 8, 6)


def gnmt() -> nn.Module:
    return models.Gnmt(32320, 1024, 4)


def deep_speech_2() -> nn.Module:
    return models.DeepSpeech2(161, 1024, 29)


def tacotron_2() -> nn.Module:
    return models.Tacotron2(148, 512, 80)


def sam_vit_b() -> nn.Module:
    from transformers import SamConfig, SamModel

    return SamModel(SamConfig())


def sd_unet() -> nn.Module:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(sample_size=64, cross_attention_dim=768)


def sd_vae() -> nn.Module:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, sample_size=512,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
    )  # fmt: skip


def clip_text() -> nn.Module:
    from transformers import CLIPTextConfig, CLIPTextModel

    return CLIPTextModel(
        CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_attention_heads=12)
    )


def bert_base() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig())


def gemma_2b() -> nn.Module:
    from transformers import GemmaConfig, GemmaForCausalLM

    return GemmaForCausalLM(
        GemmaConfig(
            hidden_size=2048, intermediate_size=16384, num_hidden_layers=18,
            num_attention_heads=8, num_key_value_heads=1, use_cache=False,
        )
    )  # fmt: skip


def mistral_7b() -> nn.Module:
    from transformers import MistralConfig, MistralForCausalLM

    return MistralForCausalLM(MistralConfig(use_cache=False))


def graph_network() -> nn.Module:
    return models.GraphNetwork(256, 5, 128)
