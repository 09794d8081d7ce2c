"""Keras as the importer needs it: float64 throughout, and the user's line of every
layer and call. Import this module before the user's file, and Keras through it.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from pathlib import Path
from typing import Any

from bakeoff_import.problems import ImportProblem, is_users

BACKENDS = ("torch", "jax", "tensorflow")
_NARROW = ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")
_LINE = "_bakeoff_line"
MIXED = (
    "float64 takes the place of the precision that the model names: the recipe has it"
)

notes: list[str] = []  # for the user


def _choose_backend() -> str:
    """The only one that is installed in this environment, or the first."""
    for name in BACKENDS:
        if importlib.util.find_spec(name) is not None:
            return name
    raise ImportProblem("this environment has no TensorFlow, JAX or torch")


def prepare(folder: str) -> Any:
    """The module keras, prepared for a user's file in `folder`."""
    os.environ["KERAS_BACKEND"] = _choose_backend()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import keras

    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    _widen(keras)
    if keras.backend.backend() == "tensorflow":
        _exact_tensorflow()
    _remember_lines(folder)
    return keras


def _exact_tensorflow() -> None:
    """TensorFlow rounds numbers within these functions to float32."""
    import tensorflow as tf
    from keras.src.backend.tensorflow import nn

    def gelu(x: Any, approximate: bool = True) -> Any:
        x = tf.convert_to_tensor(x)
        if approximate:
            inner = tf.constant(math.sqrt(2 / math.pi), x.dtype) * (
                x + tf.constant(0.044715, x.dtype) * x * x * x
            )
            return x * (1 + tf.tanh(inner)) / 2
        return x * (1 + tf.math.erf(x / tf.constant(math.sqrt(2), x.dtype))) / 2

    def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
        x = tf.convert_to_tensor(x)
        return tf.where(x > 0, x, tf.constant(negative_slope, x.dtype) * x)

    nn.gelu, nn.leaky_relu = gelu, leaky_relu


def _noted() -> None:
    if MIXED not in notes:
        notes.append(MIXED)


def _widen(keras: Any) -> None:
    """Where a policy or type of less than float64 is named it is float64."""
    from keras.src import backend, dtype_policies
    from keras.src.backend.common import global_state

    get_policy = dtype_policies.get

    def policy(identifier: Any) -> Any:
        found = get_policy(identifier)
        if getattr(found, "quantization_mode", None):
            raise ImportProblem(
                f"the model is quantised ({found.name})", "import it before that"
            )
        if found.name in _NARROW:
            if found.name.startswith("mixed"):
                _noted()
            return keras.DTypePolicy("float64")
        return found

    dtype_policies.get = policy
    set_attribute = global_state.set_global_attribute

    def remember(name: str, value: Any) -> None:
        if name == "dtype_policy" and getattr(value, "name", "") in _NARROW:
            if value.name.startswith("mixed"):
                _noted()
            value = keras.DTypePolicy("float64")
        set_attribute(name, value)

    global_state.set_global_attribute = remember
    standardize = backend.standardize_dtype

    def wide(dtype: Any) -> Any:
        narrow = isinstance(dtype, str) and dtype in _NARROW
        return "float64" if narrow else standardize(dtype)

    for name, module in list(sys.modules.items()):
        if name.startswith("keras.") and hasattr(module, "standardize_dtype"):
            module.standardize_dtype = wide  # type: ignore[attr-defined]
        if name.startswith("keras") and hasattr(module, "set_floatx"):
            module.set_floatx = lambda value: None  # type: ignore[attr-defined]


def _line(folder: str) -> str:
    """'model.py:12': the innermost frame in the user's own files."""
    frame: Any = sys._getframe(2)
    while frame is not None and not is_users(frame.f_code.co_filename, folder):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else ""


def _remember_lines(folder: str) -> None:
    from keras.src.ops.node import Node
    from keras.src.ops.operation import Operation

    for kind in (Node, Operation):
        made = kind.__init__

        def init(self: Any, *args: Any, _made: Any = made, **kwargs: Any) -> None:
            object.__setattr__(self, _LINE, _line(folder))
            _made(self, *args, **kwargs)

        kind.__init__ = init


def line_of(node: Any) -> str:
    """Where the user calls a node's layer, or makes it."""
    return getattr(node, _LINE, "") or getattr(
        getattr(node, "operation", None), _LINE, ""
    )
