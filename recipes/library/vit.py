"""The vision transformer of timm, with the configuration of vit_tiny."""

import torch
from timm.models.vision_transformer import VisionTransformer


def make_model():
    return VisionTransformer(
        img_size=32, patch_size=8, num_classes=10, embed_dim=64, depth=2, num_heads=4
    )


def make_optimizer(model):
    # 1e-8 would make steps of rounding: the gradient of the bias of keys is zero.
    return torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-7, weight_decay=0.01)


loss_fn = torch.nn.functional.cross_entropy
