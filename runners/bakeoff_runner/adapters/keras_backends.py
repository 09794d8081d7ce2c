"""What the Keras adapter has to know about the backends; one class for each.

Imported by keras_adapter.py and keras_libraries.py only. No backend is imported before
`Backend.prepare`, as flags and numbers of threads are read at import. Gradients have to
come from the model's own compiled loss by the backend's own means: Keras has no call
for them that is the same on all three. Parts of Keras and of the backends round to
float32 or fail in double precision; they are mended here for proofs alone, and a build
that is timed runs Keras as it was installed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
from abc import ABC, abstractmethod
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

from bakeoff_runner.adapter import Peak
from bakeoff_runner.adapters.jax_shared import (
    CALLS_UNDER_WAY,
    as_held,
    devices_of,
    jax_arrays,
    jax_compilations,
    jax_device,
    jax_peak,
    parts_of,
    quick_jit,
    use_devices,
)
from bakeoff_runner.adapters.silence import SILENT, silent_keras
from bakeoff_runner.adapters.tensorflow_shared import (
    set_ctc_loss,
    tensorflow_arrays,
    tensorflow_compilations,
    tensorflow_device,
    tensorflow_peak,
)
from bakeoff_runner.adapters.torch_shared import (
    limit_threads,
    stay_eager,
    torch_arrays,
    torch_compilations,
    torch_device,
    torch_peak,
)
from bakeoff_runner.transfers import Arrays, Device

if TYPE_CHECKING:
    from bakeoff_runner.adapter import Array


class Gradients(NamedTuple):
    """One forward and backward pass in training mode."""

    loss: Array
    output: Array
    grads: list[Array]  # by trainable variable
    buffers: list[Array]  # by non-trainable variable, after the pass


def first_of(output: Any) -> Any:
    """The prediction, where the model gives one output for each of several losses."""
    return output[0] if isinstance(output, (list, tuple)) else output


class Backend(ABC):
    """A framework under Keras."""

    name: str
    devices = 1  # that the contender is to train on

    def spread(self, devices: int) -> None:
        """Before Keras is imported."""
        self.devices = devices

    def used(self, tensor: Any) -> int:
        """How many devices hold a variable's value."""
        return 1

    def rows(self, tensor: Any) -> tuple[Any, int]:
        """Of a batch what the devices hold, in their order, and in how many parts."""
        return tensor, 1

    def paced(self, mark: Callable[[], None], callback: Any) -> Callable[[], None]:
        """`mark` of a step, which waits where steps must not run ahead further."""
        return mark

    @abstractmethod
    def prepare(self, threads: int) -> None:
        """Sets what has to be set before Keras is imported."""

    def set_dtype(self, dtype: str) -> None:  # noqa: B027
        """What Keras itself does not do for a build in `dtype`."""

    def compiled(self, model: Any, double: bool, masks: bool) -> None:  # noqa: B027
        """The model is compiled by Keras.

        `double`: in double precision. `masks`: it is there to draw many of dropout.
        """

    @abstractmethod
    def versions(self) -> dict[str, str]: ...

    @abstractmethod
    def device(self) -> str: ...

    @abstractmethod
    def allocator_peak(self) -> Peak: ...

    @abstractmethod
    def compilations(self) -> int: ...

    @abstractmethod
    def copies(self) -> Device:
        """How arrays get to where it computes."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Its own kind of array."""

    @abstractmethod
    def effective(self) -> dict[str, Any]:
        """Threads and flags as they are now."""

    @abstractmethod
    def gradients(self, model: Any, x: Any, y: Any, scale: Any) -> Gradients:
        """Of the model's own compiled loss; may leave changed buffers behind.

        `scale`: what the optimizer multiplies the loss with, 1 where it does not.
        """

    def apply(self, optimizer: Any, grads: list[Any], variables: list[Any]) -> bool:
        """One update of `variables` as `fit` makes it. False: Keras has to."""
        return False

    @abstractmethod
    def barrier(self, model: Any) -> list[float]:
        """Returns when every step dispatched so far is complete.

        Gives the sum of every trainable variable, in the model's order.
        """

    @abstractmethod
    def drain(self, model: Any, steps: int, take: Callable[[Any], None]) -> None:
        """Gives the model a train function that hands batches on, `steps` a call.

        It computes nothing; `fit` uses it until ``train_function`` is set again.
        """

    def before_reset(self, model: Any) -> None:  # noqa: B027
        """Called within `fit` before variables are read or written."""


class TensorFlowBackend(Backend):
    name = "tensorflow"
    _pass: Callable[..., Any]  # of the compiled model

    def prepare(self, threads: int) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self._gelu = tf.nn.gelu

    def set_dtype(self, dtype: str) -> None:
        import tensorflow as tf

        tf.nn.gelu = _double_gelu if dtype == "float64" else self._gelu
        set_ctc_loss(dtype)

    def versions(self) -> dict[str, str]:
        import tensorflow as tf

        return {"tensorflow": tf.__version__}

    def device(self) -> str:
        import tensorflow as tf

        return "gpu:0" if tf.config.list_physical_devices("GPU") else "cpu"

    def allocator_peak(self) -> Peak:
        return tensorflow_peak()

    def compilations(self) -> int:
        return tensorflow_compilations()

    def copies(self) -> Device:
        return tensorflow_device(self.device())

    def arrays(self) -> Arrays:
        return tensorflow_arrays()

    def effective(self) -> dict[str, Any]:
        import tensorflow as tf

        build = tf.sysconfig.get_build_info()
        return {
            "threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "cuda_build": bool(build.get("is_cuda_build", False)),
        }

    def tensor(self, variable: Any) -> Any:
        """TensorFlow's own variable of one of the model's."""
        return variable.value

    def loss(self, model: Any, x: Any, y: Any, output: Any) -> Any:
        return model.compute_loss(x=x, y=y, y_pred=output, training=True)

    def value(self, variable: Any) -> Array:
        return _numpy(variable)

    def compiled(self, model: Any, double: bool, masks: bool) -> None:
        import tensorflow as tf

        self._pass = functools.partial(self._pass_of, model)
        if masks and not model.run_eagerly:  # a graph once, as `fit` makes it
            self._pass = tf.function(self._pass, autograph=False)

    def gradients(self, model: Any, x: Any, y: Any, scale: Any) -> Gradients:
        loss, output, grads = self._pass(x, y, scale)
        return Gradients(
            loss.numpy(),
            output.numpy(),
            [grad.numpy() / scale for grad in grads],
            [self.value(variable) for variable in model.non_trainable_variables],
        )

    def _pass_of(self, model: Any, x: Any, y: Any, scale: Any) -> tuple[Any, ...]:
        import tensorflow as tf

        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            output = model(x, training=True)
            loss = self.loss(model, x, y, output)
            scaled = loss * scale
        grads = tape.gradient(
            scaled,
            [self.tensor(variable) for variable in variables],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return (
            loss,
            tf.cast(first_of(output), _wide(first_of(output))),
            [tf.convert_to_tensor(grad) for grad in grads],
        )

    def drain(self, model: Any, steps: int, take: Callable[[Any], None]) -> None:
        def step(iterator: Any) -> dict[str, Any]:
            for _ in range(steps):
                take(next(iterator))
            return {}

        model.train_function = step

    def barrier(self, model: Any) -> list[float]:
        import tensorflow as tf

        # And what the last step wrote last of all.
        parts = [
            tf.cast(tf.reduce_sum(self.tensor(variable)), tf.float64)
            for variable in [*model.trainable_variables, model.optimizer.iterations]
        ]
        sums: list[float] = tf.stack(parts).numpy().tolist()
        return sums[:-1]


class JaxBackend(Backend):
    name = "jax"
    _compiled: tuple[Any, Any] = (None, None)  # a model and its pass, compiled once
    _quick = False  # compile for a proof alone
    _apart: Sequence[Any] = ()  # what devices hold that exchange nothing

    def prepare(self, threads: int) -> None:
        # XLA's pool has a thread for each processor that the process may use.
        allowed = sorted(os.sched_getaffinity(0))
        if threads < len(allowed):
            os.sched_setaffinity(0, allowed[:threads])

    def spread(self, devices: int) -> None:
        super().spread(devices)
        use_devices(devices)

    def used(self, tensor: Any) -> int:
        return devices_of(tensor)

    def rows(self, tensor: Any) -> tuple[Any, int]:
        return as_held(tensor, 0), parts_of(tensor)

    def paced(self, mark: Callable[[], None], callback: Any) -> Callable[[], None]:
        """`fit` keeps no loss of a step, so now and then all of its state is there."""
        import jax

        if self.devices == 1 or jax.default_backend() != "cpu":
            return mark
        turns = itertools.cycle(range(CALLS_UNDER_WAY))

        def mark_and_wait() -> None:
            mark()
            if next(turns) == 0:
                self.barrier(callback.model)

        return mark_and_wait

    def set_dtype(self, dtype: str) -> None:
        import jax

        jax.config.update("jax_enable_x64", dtype == "float64")

    def compiled(self, model: Any, double: bool, masks: bool) -> None:
        self._quick = double or masks
        if double and model.jit_compile and not model.run_eagerly:
            model.train_step = quick_jit(model.train_step)
            model.jit_compile = False
        elif SILENT and self.devices > 1:
            import jax

            step = jax.jit(model.train_step, donate_argnums=0)
            model.train_step, self._apart = silent_keras(step)
            model.jit_compile = False

    def versions(self) -> dict[str, str]:
        import jax

        return {"jax": jax.__version__, "jaxlib": version("jaxlib")}

    def device(self) -> str:
        import jax

        device = jax.devices()[0]
        return "cpu" if device.platform == "cpu" else f"{device.platform}:{device.id}"

    def allocator_peak(self) -> Peak:
        return jax_peak()

    def compilations(self) -> int:
        return jax_compilations()

    def copies(self) -> Device:
        return jax_device()

    def arrays(self) -> Arrays:
        return jax_arrays()

    def effective(self) -> dict[str, Any]:
        import jax

        return {
            "threads": len(os.sched_getaffinity(0)),
            "x64": bool(jax.config.jax_enable_x64),
            "matmul_precision": jax.config.jax_default_matmul_precision or "default",
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
            "device_kind": jax.devices()[0].device_kind,
        }

    def gradients(self, model: Any, x: Any, y: Any, scale: Any) -> Gradients:
        import jax
        import numpy as np

        def state(variables: Any) -> list[Any]:
            return [variable.value for variable in variables]

        def pass_(*variables: Any) -> Any:
            trained, others, metrics, optimizer, x, y = variables
            step = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)
            return step(
                trained,
                others,
                metrics,
                x,
                y,
                None,
                training=True,
                optimizer_variables=optimizer,
            )

        variables = (
            state(model.trainable_variables),
            state(model.non_trainable_variables),
            state(model.metrics_variables),
            state(model.optimizer.variables),
            self._split(x),
            self._split(y),
        )
        if self._compiled[0] is not model:
            jit = quick_jit if self._quick else jax.jit
            self._compiled = model, jit(pass_)
        try:
            found = self._compiled[1](*variables)
        except jax.errors.ConcretizationTypeError:  # the model is no pure function
            found = pass_(*variables)
        (_, (loss, output, buffers, _)), grads = found
        return Gradients(
            np.array(loss),
            np.array(first_of(output), _wide(first_of(output))),
            [np.array(grad) / scale for grad in grads],
            [np.array(buffer) for buffer in buffers],
        )

    def _split(self, rows: Any) -> Any:
        """As `fit` splits the rows of a batch."""
        import jax
        import keras

        distribution = keras.distribution.distribution()
        if distribution is None:
            return rows

        def place(array: Any) -> Any:
            layout = distribution.get_data_layout(array.shape)
            return jax.device_put(array, layout.backend_layout)

        return keras.tree.map_structure(place, rows)

    def apply(self, optimizer: Any, grads: list[Any], variables: list[Any]) -> bool:
        import jax

        kept = [variable.value for variable in optimizer.variables]
        trained = [variable.value for variable in variables]
        try:
            apply = (quick_jit if self._quick else jax.jit)(optimizer.stateless_apply)
            made, _ = apply(kept, grads, trained)
        except jax.errors.ConcretizationTypeError:  # it is no pure function
            return False
        for variable, value in zip(variables, made):
            variable.assign(value)
        return True

    def drain(self, model: Any, steps: int, take: Callable[[Any], None]) -> None:
        def step(state: Any, iterator: Any) -> tuple[dict[str, Any], Any]:
            take(next(iterator))
            with contextlib.suppress(StopIteration):  # an execution ends with its epoch
                for _ in range(steps - 1):
                    take(next(iterator))
            return {}, state

        model.train_function = step

    def barrier(self, model: Any) -> list[float]:
        import jax
        import numpy as np

        jax.block_until_ready(self._apart)
        # `fit` keeps the state outside of the model until it is requested.
        if not getattr(model, "_jax_state_synced", True):
            # In containers of its own, which JAX would take for something else.
            jax.block_until_ready([list(part) for part in model._jax_state.values()])
            trained = model._jax_state["trainable_variables"]
        else:
            variables = [*model.variables, *model.optimizer.variables]
            jax.block_until_ready([variable.value for variable in variables])
            trained = [variable.value for variable in model.trainable_variables]
        return [float(np.asarray(leaf).sum()) for leaf in trained]

    def before_reset(self, model: Any) -> None:
        model.jax_state_sync()


class TorchBackend(Backend):
    name = "torch"

    def prepare(self, threads: int) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        limit_threads(threads)

    def set_dtype(self, dtype: str) -> None:
        stay_eager(dtype == "float64")
        _double_convolutions(dtype == "float64")

    def versions(self) -> dict[str, str]:
        import torch

        return {"torch": torch.__version__}

    def device(self) -> str:
        import torch

        return "cuda:0" if torch.cuda.is_available() else "cpu"

    def allocator_peak(self) -> Peak:
        return torch_peak()

    def compilations(self) -> int:
        return torch_compilations()

    def copies(self) -> Device:
        return torch_device(self.device())

    def arrays(self) -> Arrays:
        return torch_arrays()

    def effective(self) -> dict[str, Any]:
        import torch

        backends: Any = torch.backends
        return {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "tf32": {
                "matmul": str(getattr(backends.cuda.matmul, "fp32_precision", "")),
                "conv": str(getattr(backends.cudnn.conv, "fp32_precision", "")),
            },
        }

    def gradients(self, model: Any, x: Any, y: Any, scale: Any) -> Gradients:
        import numpy as np

        variables = model.trainable_variables
        model.train()
        model.zero_grad()
        output = model(x, training=True)
        loss = model.compute_loss(x=x, y=y, y_pred=output, training=True)
        if loss.requires_grad:
            (loss * scale).backward()
        grads = [variable.value.grad for variable in variables]
        result = Gradients(
            _copy(loss),
            _copy(first_of(output)),
            [
                np.zeros(variable.shape, variable.dtype)
                if grad is None
                else _copy(grad) / scale
                for grad, variable in zip(grads, variables)
            ],
            [_numpy(variable) for variable in model.non_trainable_variables],
        )
        model.zero_grad()
        return result

    def drain(self, model: Any, steps: int, take: Callable[[Any], None]) -> None:
        def step(data: Any) -> dict[str, Any]:
            for batch in data:
                take(batch)
            return {}

        model.train_function = step

    def barrier(self, model: Any) -> list[float]:
        import torch

        if torch.cuda.is_available():
            torch.cuda.synchronize()
        trained = [variable.value.detach() for variable in model.trainable_variables]
        sums: list[float] = []
        if trained:
            sums = torch.stack([parameter.sum() for parameter in trained]).tolist()
        return sums


_CONVOLUTIONS: dict[str, Any] = {}  # torch's own


def _double_convolutions(double: bool) -> None:
    """In double precision kernels of one channel lie in torch's order.

    On a CPU torch 2.13 has no gradient of others ("grad_weight must be contiguous"),
    and Keras hands over its own, transposed.
    """
    from torch.nn import functional

    for name in ("conv1d", "conv2d"):
        own = _CONVOLUTIONS.setdefault(name, getattr(functional, name))

        def ordered(
            x: Any, weight: Any, *more: Any, own: Any = own, **named: Any
        ) -> Any:
            return own(x, weight.contiguous(), *more, **named)

        setattr(functional, name, ordered if double else own)


def _double_gelu(x: Any, approximate: bool = False, name: Any = None) -> Any:
    """`tf.nn.gelu` without its constants that are rounded to float32."""
    import tensorflow as tf

    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + tf.tanh(inner))
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))


def _copy(tensor: Any) -> Array:
    tensor = tensor.detach().cpu()
    if _wide(tensor) == "float32":
        tensor = tensor.float()
    copy: Array = tensor.numpy().copy()
    return copy


def _wide(tensor: Any) -> str:
    """The dtype of a tensor, at least float32."""
    name = str(getattr(tensor.dtype, "name", tensor.dtype)).removeprefix("torch.")
    return "float32" if name in ("bfloat16", "float16") else name


def _numpy(variable: Any) -> Array:
    import keras
    import numpy as np

    return np.array(keras.ops.convert_to_numpy(variable.value))


BACKENDS: dict[str, type[Backend]] = {
    backend.name: backend for backend in (TensorFlowBackend, JaxBackend, TorchBackend)
}
