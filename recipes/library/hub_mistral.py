"""Mistral of KerasHub, with the configuration of mistral_tiny."""

import keras
from keras_hub.models import MistralBackbone, MistralCausalLM


def build_model():
    backbone = MistralBackbone(
        vocabulary_size=256, hidden_dim=64, intermediate_dim=192, num_layers=2,
        num_query_heads=4, num_key_value_heads=2, sliding_window=8,
    )  # fmt: skip
    network = MistralCausalLM(backbone, preprocessor=None)
    words = keras.Input((24,), dtype="int32")
    mask = keras.ops.ones_like(words)
    return keras.Model(words, network({"token_ids": words, "padding_mask": mask}))


class AdamW(keras.optimizers.AdamW):
    """Adds epsilon where PyTorch does: behind the correction of the bias, not before it.
    And rows that a batch lacks move too; Keras on TensorFlow leaves them where they are."""

    def update_step(self, gradient, variable, learning_rate):
        gradient = keras.ops.add(gradient, keras.ops.zeros(variable.shape))
        step = keras.ops.cast(self.iterations + 1, variable.dtype)
        self.epsilon = 1e-8 * keras.ops.sqrt(1 - self.beta_2**step)
        super().update_step(gradient, variable, learning_rate)
        self.epsilon = 1e-8


def compile_model(model):
    model.compile(
        optimizer=AdamW(1e-4, weight_decay=0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
