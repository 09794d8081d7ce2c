"""The UNet of Stable Diffusion of diffusers, with the configuration of unet_tiny."""

import torch
from diffusers import UNet2DConditionModel


def make_model():
    return UNet2DConditionModel(
        sample_size=16, layers_per_block=1, block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24,
        attention_head_dim=4, norm_num_groups=8,
    )  # fmt: skip


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)


def train_step(model, optimizer, pictures, steps, words, noise):
    optimizer.zero_grad()
    found = model(pictures, steps, words).sample
    loss = torch.nn.functional.mse_loss(found, noise)
    loss.backward()
    optimizer.step()
    return loss


@torch.inference_mode()
def predict_step(model, pictures, steps, words):
    return model.eval()(pictures, steps, words).sample
