"""Keras as the importer needs it: float64 throughout, and the user's line of every
layer and call. Import this module before the user's file, and Keras through it.

`keras.config.set_floatx` is not enough: type promotion turns 64-bit types into 32 bits,
some functions of TensorFlow and JAX round to float32 whatever they get, and layers name
a policy of their own. These places are replaced one by one; each replacement says which
function rounds. Layers know nothing of where they were made, so their constructors take
note of the innermost frame in the user's own files, which messages then name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import sys
from pathlib import Path
from typing import Any, Iterator

import numpy as np

from bakeoff_import.problems import ImportProblem, is_users

BACKENDS = ("torch", "jax", "tensorflow")
NARROW = ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")
_LINE = "_bakeoff_line"
MIXED = (
    "float64 takes the place of the precision that the model names: the recipe has it"
)

notes: list[str] = []  # for the user
_changed: list[tuple[Any, str, Any]] = []  # owner, attribute, what it was


def _choose_backend() -> str:
    """The only one that is installed in this environment, or the first."""
    for name in BACKENDS:
        if importlib.util.find_spec(name) is not None:
            return name
    raise ImportProblem("this environment has no TensorFlow, JAX or torch")


def prepare(folder: str) -> Any:
    """The module keras, prepared for a user's file in `folder`, which is the same in
    every call."""
    notes.clear()
    if "keras" in sys.modules:
        return sys.modules["keras"]
    os.environ["KERAS_BACKEND"] = _choose_backend()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import keras

    _change_everything(keras, folder)
    return keras


@contextlib.contextmanager
def prepared(folder: str) -> Iterator[Any]:
    """Keras as it is in a process that goes on to use it: float64 meanwhile."""
    import keras

    notes.clear()
    kept: dict[str, Any] = {"floatx": keras.config.floatx()}
    policy = keras.config.dtype_policy()
    jax = sys.modules.get("jax") if keras.backend.backend() == "jax" else None
    if jax is not None:
        kept["x64"] = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
    try:
        _change_everything(keras, folder)
        yield keras
    finally:
        while _changed:
            owner, name, value = _changed.pop()
            setattr(owner, name, value)
        keras.config.set_floatx(kept["floatx"])
        keras.config.set_dtype_policy(policy)
        if jax is not None:
            jax.config.update("jax_enable_x64", kept["x64"])


def _change(owner: Any, name: str, value: Any) -> None:
    _changed.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def _change_everything(keras: Any, folder: str) -> None:
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    _widen(keras)
    exact = {"tensorflow": _exact_tensorflow, "jax": _exact_jax}
    exact.get(keras.backend.backend(), lambda: None)()
    _remember_lines(folder)


def _exact_tensorflow() -> None:
    """TensorFlow rounds numbers within these functions to float32."""
    import tensorflow as tf
    from keras.src.backend.tensorflow import core, nn, numpy

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

    def signbit(x: Any) -> Any:  # of argmax; that of Keras takes 32 bits apart
        return tf.bitcast(tf.cast(x, "float64"), "int64") < 0

    _change(nn, "gelu", gelu)
    _change(numpy, "signbit", signbit)
    _change(nn, "leaky_relu", leaky_relu)
    for name in ("convert_to_tensor", "cast"):
        _replace(name, getattr(core, name), _of_float64(getattr(core, name)))


def _of_float64(plain: Any) -> Any:
    """The function, which takes Python's numbers as they are."""

    def convert(x: Any, *args: Any, **kwargs: Any) -> Any:
        return plain(np.float64(x) if isinstance(x, float) else x, *args, **kwargs)

    return convert


def _replace(name: str, plain: Any, new: Any) -> None:
    """In all of Keras's modules that have this function."""
    for key, module in list(sys.modules.items()):
        if key.startswith("keras.") and vars(module).get(name) is plain:
            _change(module, name, new)


def _exact_jax() -> None:
    """JAX's attention computes its softmax in float32."""
    import jax.numpy as jnp
    from keras.src.backend.jax import nn

    def attention(
        query: Any,
        key: Any,
        value: Any,
        bias: Any = None,
        mask: Any = None,
        scale: Any = None,
        is_causal: bool = False,
        **_: Any,
    ) -> Any:
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        scores = jnp.einsum("btnd,bsnd->bnts", query, key) * scale
        scores = scores if bias is None else scores + bias
        if is_causal:
            side = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
            mask = side if mask is None else jnp.logical_and(mask, side)
        if mask is not None:
            scores = jnp.where(mask, scores, -1e30)
        scores = scores - scores.max(axis=-1, keepdims=True)
        weights = jnp.exp(scores)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return jnp.einsum("bnts,bsnd->btnd", weights, value)

    _change(nn, "dot_product_attention", attention)


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
        if found.name in NARROW:
            if found.name.startswith("mixed"):
                _noted()
            return keras.DTypePolicy("float64")
        return found

    _change(dtype_policies, "get", policy)
    set_attribute = global_state.set_global_attribute

    def remember(name: str, value: Any) -> None:
        if name == "dtype_policy" and getattr(value, "name", "") in NARROW:
            if value.name.startswith("mixed"):
                _noted()
            value = keras.DTypePolicy("float64")
        set_attribute(name, value)

    _change(global_state, "set_global_attribute", remember)
    standardize = backend.standardize_dtype

    def wide(dtype: Any) -> Any:
        narrow = isinstance(dtype, str) and dtype in NARROW
        return "float64" if narrow else standardize(dtype)

    promoted = backend.result_type

    def widest(*dtypes: Any) -> Any:
        found = promoted(*dtypes)  # that of float64 and float32 is float32
        return "float64" if found in NARROW else found

    _replace("standardize_dtype", standardize, wide)
    _replace("result_type", promoted, widest)
    _replace("set_floatx", keras.config.set_floatx, lambda value: None)


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

        _change(kind, "__init__", init)


def line_of(node: Any) -> str:
    """Where the user calls a node's layer, or makes it."""
    return getattr(node, _LINE, "") or getattr(
        getattr(node, "operation", None), _LINE, ""
    )
