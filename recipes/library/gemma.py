"""Gemma of transformers, with the configuration of gemma_tiny."""

import torch
from transformers import GemmaConfig, GemmaForCausalLM


def make_model():
    return GemmaForCausalLM(
        GemmaConfig(
            vocab_size=256, hidden_size=64, intermediate_size=256, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=1, head_dim=16,
            max_position_embeddings=64, use_cache=False, pad_token_id=None,
        )
    )  # fmt: skip


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)


def train_step(model, optimizer, ids, labels):
    optimizer.zero_grad()
    # Labels as they are: the recipe's are the next words already.
    loss = model(input_ids=ids, labels=labels, shift_labels=labels).loss
    loss.backward()
    optimizer.step()
    return loss
