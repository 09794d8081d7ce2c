"""Mistral of transformers with LoRA by peft, with the configuration of mistral_lora_tiny."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import MistralConfig, MistralForCausalLM


def make_model():
    model = MistralForCausalLM(
        MistralConfig(
            vocab_size=256, hidden_size=64, intermediate_size=192, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, sliding_window=8,
            max_position_embeddings=64, use_cache=False,
        )
    )  # fmt: skip
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])
    return get_peft_model(model, lora)


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def train_step(model, optimizer, ids, labels):
    optimizer.zero_grad()
    loss = model(input_ids=ids, shift_labels=labels, labels=labels).loss
    loss.backward()
    optimizer.step()
    return loss
