"""The picture encoder of SAM of KerasHub, with the configuration of sam_encoder_tiny."""

import keras
from keras_hub.models import ViTDetBackbone
from safetensors.numpy import load_file


def load_data(path):
    data = load_file(path)
    return tuple(data[name].transpose(0, 2, 3, 1) for name in ("pixel_values", "y"))


def build_model():
    encoder = ViTDetBackbone(
        hidden_size=32, intermediate_dim=64, num_layers=2, num_heads=2, window_size=4,
        global_attention_layer_indices=[1], image_shape=(64, 64, 3), patch_size=8,
        num_output_channels=16,
    )  # fmt: skip
    # KerasHub's model normalises pictures itself, that of transformers gets such as are:
    # the two lines are undone by each other.
    pictures = keras.Input((64, 64, 3))
    given = pictures * keras.ops.array([0.229, 0.224, 0.225], dtype=pictures.dtype)
    given += keras.ops.array([0.485, 0.456, 0.406], dtype=pictures.dtype)
    return keras.Model(pictures, encoder(given))


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
        loss="mse",
    )
