"""BERT of transformers with its head for language, with the configuration of bert_tiny."""

import torch
from transformers import BertConfig, BertForMaskedLM


def make_model():
    return BertForMaskedLM(
        BertConfig(
            vocab_size=256,
            hidden_size=64,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=64,
            pad_token_id=None,
        )
    )


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)


def train_step(model, optimizer, ids, labels):
    optimizer.zero_grad()
    loss = model(input_ids=ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    return loss
