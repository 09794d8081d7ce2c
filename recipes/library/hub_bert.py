"""BERT of KerasHub with its head for language, with the configuration of bert_tiny."""

import keras
from keras_hub.layers import MaskedLMHead
from keras_hub.models import BertBackbone


def build_model():
    bert = BertBackbone(
        vocabulary_size=256, hidden_dim=64, intermediate_dim=256, num_layers=2,
        num_heads=4, max_sequence_length=64,
    )  # fmt: skip
    # KerasHub has GELU by tanh here, and 1e-5 in BertMaskedLM's head; transformers has
    # that by erf, and 1e-12. The pooled output is not part of the head for language.
    for layer in bert.transformer_layers:
        layer._feedforward_intermediate_dense.activation = keras.activations.gelu
    head = MaskedLMHead(
        token_embedding=bert.token_embedding, intermediate_activation="gelu",
        layer_norm_epsilon=1e-12, name="mlm_head",
    )  # fmt: skip
    words = keras.Input((24,), dtype="int32")
    mask, places = keras.ops.ones_like(words), keras.ops.arange(24, dtype="int32")
    given = {"token_ids": words, "segment_ids": 0 * words, "padding_mask": mask}
    encoder = keras.Model(bert.input, bert.output["sequence_output"])
    return keras.Model(words, head(encoder(given), mask * places))


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
