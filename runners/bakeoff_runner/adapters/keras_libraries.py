"""What the Keras adapter has to know about Keras 3 and Keras 2; one class for each.

Imported by keras_adapter.py and keras2_adapter.py only. Nothing is imported before
`Library.start`. The two have the same layers and other insides: trees, variable paths,
loss scales and optimizer states are spelled differently, and only Keras 2 leaves 64-bit
types alone. Everything that a proof in double precision has to change in Keras's type
promotion stands here, next to the function that rounds.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Mapping

from bakeoff_runner.adapter import AdapterError
from bakeoff_runner.adapters.keras_backends import (
    BACKENDS,
    Backend,
    TensorFlowBackend,
)
from bakeoff_runner.adapters.tensorflow_shared import double_ctc_loss

if TYPE_CHECKING:
    from bakeoff_runner.adapter import Array


class Library(ABC):
    """One generation of Keras."""

    framework: ClassVar[str]  # of the recipe
    options: ClassVar[frozenset[str]]
    keras: Any  # the module, from `start` on

    @abstractmethod
    def backend(self, options: Mapping[str, str]) -> Backend:
        """The backend that the options ask for; nothing is imported."""

    @abstractmethod
    def start(self) -> None:
        """Imports Keras, with channels last."""

    @abstractmethod
    def set_dtype(self, dtype: str) -> None:
        """Makes models that are built from now on compute in `dtype`."""

    @abstractmethod
    def floatx(self) -> str: ...

    @abstractmethod
    def clear(self) -> None:
        """Forgets models and names made before."""

    @abstractmethod
    def map(self, function: Callable[[Any], Any], structure: Any) -> Any:
        """`function` over the leaves of tuples, lists and dicts."""

    @abstractmethod
    def leaves(self, structure: Any) -> list[Any]:
        """Those that `map` calls its function with."""

    @abstractmethod
    def tensor(self, array: Array, dtype: Any = None) -> Any: ...

    @abstractmethod
    def array(self, tensor: Any) -> Array:
        """A copy of a tensor."""

    @abstractmethod
    def value(self, variable: Any) -> Array:
        """A copy of a variable's value."""

    @abstractmethod
    def path(self, variable: Any) -> str:
        """How layout files call a variable of a model: "conv1/kernel"."""

    @abstractmethod
    def compiled(self, model: Any) -> bool: ...

    @abstractmethod
    def apply(self, optimizer: Any, grads: list[Any], variables: list[Any]) -> None: ...

    @abstractmethod
    def loss_scale(self, optimizer: Any) -> Any:
        """The variable that holds what the loss is multiplied with; None: it is not."""

    def averages(self, optimizer: Any, model: Any) -> dict[int, Any]:
        """The moving averages of weights, by the id of the variable."""
        pairs = zip(
            model.trainable_variables, optimizer._model_variables_moving_average
        )
        return {id(variable): average for variable, average in pairs}

    def optimizer_variables(self, optimizer: Any) -> list[Any]:
        """Its whole state."""
        return list(optimizer.variables)

    def mean_loss(self, model: Any) -> float:
        """Of the steps since its metrics were reset; NaN where it keeps none."""
        for metric in model.metrics:
            if metric.name == "loss":
                return float(self.array(metric.result()))
        return float("nan")

    @abstractmethod
    def steps_per_execution(self, model: Any) -> int: ...

    def set_steps_per_execution(self, model: Any, steps: int) -> None:  # noqa: B027
        """Where it is a variable that `fit` may leave with another value."""

    def check_script(self, file: str, backend: Backend) -> None:  # noqa: B027
        """After the script was imported."""

    def double_constants(self, model: Any) -> None:  # noqa: B027
        """Makes constants double that layers round to float32 in a float64 model."""

    def widen(self, wide: bool) -> None:  # noqa: B027
        """Where the code says float32 it gets float64."""

    @abstractmethod
    def variable(self, array: Array) -> Any:
        """One that no model has."""


class Keras3(Library):
    """The package keras, on any backend."""

    framework = "keras"
    options = frozenset(
        {
            "backend",
            "jit_compile",
            "steps_per_execution",
            "devices",
            "input",
            "cache",
            "precision",
            "tf32",
        }
    )

    def backend(self, options: Mapping[str, str]) -> Backend:
        name = options.get("backend", os.environ.get("KERAS_BACKEND", "tensorflow"))
        if name not in BACKENDS:
            raise AdapterError(f"'{name}' is not a backend: {', '.join(BACKENDS)}")
        os.environ["KERAS_BACKEND"] = name
        return BACKENDS[name]()

    def start(self) -> None:
        import keras

        self.keras = keras
        keras.config.set_image_data_format("channels_last")  # not the user's keras.json
        self._narrowed = dict(_narrowed_types())

    def set_dtype(self, dtype: str) -> None:
        """With JAX and torch type promotion turns every 64-bit type into 32 bits.

        BatchNormalization, `ops.mean` and losses would then leave double precision.
        """
        self.keras.config.set_floatx(dtype)
        narrowed = _narrowed_types()
        narrowed.update(self._narrowed)
        if dtype == "float64":
            narrowed.pop("float64", None)
        if self.keras.backend.backend() == "tensorflow":
            _set_ctc_loss(dtype)

    def widen(self, wide: bool) -> None:
        """Layers of KerasHub name float32 where they mean no less than that."""
        from keras.src.backend.common import dtypes

        dtypes.PYTHON_DTYPES_MAP.pop("float32", None)
        if wide:
            dtypes.PYTHON_DTYPES_MAP["float32"] = "float64"
        backend = self.keras.backend.backend()
        if backend == "jax":
            _set_attention(wide)
        elif backend == "tensorflow":
            _set_tensorflow(wide)

    def variable(self, array: Array) -> Any:
        return self.keras.Variable(array, trainable=False, dtype=self.floatx())

    def floatx(self) -> str:
        return str(self.keras.config.floatx())

    def clear(self) -> None:
        self.keras.utils.clear_session()
        self.keras.config.set_dtype_policy(self.floatx())

    def map(self, function: Callable[[Any], Any], structure: Any) -> Any:
        return self.keras.tree.map_structure(function, structure)

    def leaves(self, structure: Any) -> list[Any]:
        return list(self.keras.tree.flatten(structure))

    def tensor(self, array: Array, dtype: Any = None) -> Any:
        return self.keras.ops.convert_to_tensor(array, dtype=dtype)

    def array(self, tensor: Any) -> Array:
        import numpy as np

        return np.array(self.keras.ops.convert_to_numpy(tensor))

    def value(self, variable: Any) -> Array:
        return self.array(variable.value)

    def path(self, variable: Any) -> str:
        return str(variable.path)

    def compiled(self, model: Any) -> bool:
        return bool(model.compiled)

    def apply(self, optimizer: Any, grads: list[Any], variables: list[Any]) -> None:
        optimizer.apply(grads, variables)

    def loss_scale(self, optimizer: Any) -> Any:
        return getattr(optimizer, "dynamic_scale", None)

    def steps_per_execution(self, model: Any) -> int:
        return int(model.steps_per_execution)

    def check_script(self, file: str, backend: Backend) -> None:
        wanted = os.environ.get("KERAS_BACKEND")
        if wanted != backend.name:
            os.environ["KERAS_BACKEND"] = backend.name
            raise AdapterError(
                f"{file} sets KERAS_BACKEND to {wanted}, the contender's "
                f"backend is {backend.name}"
            )


class Keras2(Library):
    """The package tf_keras. Variables are TensorFlow's own."""

    framework = "keras2"
    options = frozenset(
        {"jit_compile", "steps_per_execution", "input", "cache", "precision", "tf32"}
    )

    def backend(self, options: Mapping[str, str]) -> Backend:
        return _Keras2Backend()

    def start(self) -> None:
        import tf_keras

        self.keras = tf_keras
        tf_keras.backend.set_image_data_format("channels_last")

    def set_dtype(self, dtype: str) -> None:
        self.keras.backend.set_floatx(dtype)

    def variable(self, array: Array) -> Any:
        return self.keras.backend.variable(array, dtype=self.floatx())

    def floatx(self) -> str:
        return str(self.keras.backend.floatx())

    def clear(self) -> None:
        self.keras.backend.clear_session()
        self.keras.mixed_precision.set_global_policy(self.floatx())

    def map(self, function: Callable[[Any], Any], structure: Any) -> Any:
        import tensorflow as tf

        return tf.nest.map_structure(function, structure)

    def leaves(self, structure: Any) -> list[Any]:
        import tensorflow as tf

        return list(tf.nest.flatten(structure))

    def tensor(self, array: Array, dtype: Any = None) -> Any:
        import tensorflow as tf

        return tf.convert_to_tensor(array, dtype=dtype)

    def array(self, tensor: Any) -> Array:
        import numpy as np

        return np.array(tensor)

    def value(self, variable: Any) -> Array:
        return self.array(variable)

    def path(self, variable: Any) -> str:
        return str(variable.name).removesuffix(":0")

    def compiled(self, model: Any) -> bool:
        return bool(model._is_compiled)

    def apply(self, optimizer: Any, grads: list[Any], variables: list[Any]) -> None:
        optimizer.apply_gradients(zip(grads, variables))

    def loss_scale(self, optimizer: Any) -> Any:
        dynamic = getattr(optimizer, "dynamic", False)  # a LossScaleOptimizer
        return optimizer._loss_scale.current_loss_scale if dynamic else None

    def optimizer_variables(self, optimizer: Any) -> list[Any]:
        variables = list(optimizer.variables)
        scale = self.loss_scale(optimizer)
        if scale is None:
            return variables
        # Of a LossScaleOptimizer they are those of the optimizer within.
        return [*variables, scale, optimizer.dynamic_counter]

    def steps_per_execution(self, model: Any) -> int:
        return int(model.steps_per_execution.numpy())

    def set_steps_per_execution(self, model: Any, steps: int) -> None:
        model.make_train_function()  # made once, with a loop where there are several
        model.steps_per_execution.assign(steps)

    def double_constants(self, model: Any) -> None:
        import numpy as np

        # 1 - momentum becomes a tensor without a word about its dtype.
        for layer in model._flatten_layers():
            if hasattr(layer, "moving_mean") and isinstance(layer.momentum, float):
                layer.momentum = np.float64(layer.momentum)


class _Keras2Backend(TensorFlowBackend):
    def tensor(self, variable: Any) -> Any:
        return variable

    def loss(self, model: Any, x: Any, y: Any, output: Any) -> Any:
        return model.compute_loss(x=x, y=y, y_pred=output)

    def value(self, variable: Any) -> Array:
        value: Array = variable.numpy().copy()
        return value


_OWN: dict[str, Any] = {}  # Keras's own


def _set_ctc_loss(dtype: str) -> None:
    """Keras on TensorFlow rounds what its `ctc_loss` gets to float32."""
    from keras.src.backend.tensorflow import nn

    def double(
        labels: Any, logits: Any, length: Any, frames: Any, mask_index: int = 0
    ) -> Any:
        return double_ctc_loss(
            labels, logits, length, frames, False, blank_index=mask_index
        )

    own = _OWN.setdefault("ctc_loss", nn.ctc_loss)
    nn.ctc_loss = double if dtype == "float64" else own


def _set_attention(wide: bool) -> None:
    """JAX rounds what its softmax of attention gets to float32."""
    import jax
    from keras.src.backend.jax import nn

    def double(
        query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None,
        scale: Any = None, is_causal: bool = False, **_: Any,
    ) -> Any:  # fmt: skip
        groups = query.shape[2] // key.shape[2]
        key, value = (jax.numpy.repeat(part, groups, axis=2) for part in (key, value))
        scale = query.shape[3] ** -0.5 if scale is None else scale
        logits = jax.numpy.einsum("BTNH,BSNH->BNTS", query, key) * scale
        logits = logits if bias is None else logits + bias
        weights = jax.nn.softmax(nn._apply_masks(logits, mask, is_causal))
        return jax.numpy.einsum("BNTS,BSNH->BTNH", weights, value)

    own = _OWN.setdefault("attention", nn.dot_product_attention)
    nn.dot_product_attention = double if wide else own


def _set_tensorflow(wide: bool) -> None:
    """Keras on TensorFlow makes the scale of an attention float32, and `signbit`, which
    its accuracy asks for, looks at the bits of what it calls float32."""
    import tensorflow as tf
    from keras.src.backend.tensorflow import nn, numpy

    def attention(
        query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None,
        scale: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        scale = query.shape[3] ** -0.5 if scale is None else scale
        exact = scale if tf.is_tensor(scale) else tf.constant(scale, tf.float64)
        return own(query, key, value, bias, mask, exact, **options)

    def signbit(x: Any) -> Any:
        return tf.less(tf.bitcast(tf.cast(x, tf.float64), tf.int64), 0)

    own = _OWN.setdefault("attention", nn.dot_product_attention)
    nn.dot_product_attention = attention if wide else own
    own_sign = _OWN.setdefault("signbit", numpy.signbit)
    numpy.signbit = signbit if wide else own_sign


def _narrowed_types() -> dict[str, str]:
    """Keras's own table: what its type promotion makes of 64-bit types."""
    from keras.src.backend.common import dtypes

    table: dict[str, str] = dtypes.BIT64_TO_BIT32_DTYPE
    return table
