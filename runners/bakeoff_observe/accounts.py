"""To which account a look at the stack belongs: what the script was doing then.

Each look belongs to one account, so that the shares of all add up to the whole. It is
the innermost frame with a known module that tells, from there to the user's own line:
a C function that the line calls itself has no frame, and counts as the line's own.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, Callable, Optional, Sequence

__all__ = ["account_of", "loads"]

# By the beginnings of modules, the longest that fits.
_MODULES = {
    "torch": "ops",
    "torch.utils.data": "input",
    "torch.autograd": "backward",
    "torch.autograd.grad_mode": "ops",
    "torch.autograd.profiler": "ops",
    "torch.optim": "optimizer",
    "torch.nn": "model",
    "torch.nn.utils": "ops",
    "torch.nn.utils.parametrize": "weights",
    "torch.nn.utils.parametrizations": "weights",
    "torch.nn.utils.weight_norm": "weights",
    "torch.nn.utils.spectral_norm": "weights",
    "torch._dynamo.convert_frame": "compile",
    "torch._dynamo.symbolic_convert": "compile",
    "torch._inductor.compile_fx": "compile",
    "torch._inductor.graph": "compile",
    "torch._inductor.scheduler": "compile",
    "torch._inductor.codecache": "compile",
    "torch.serialization": "save",
    "jax": "ops",
    "jax._src.array": "read",
    "jax._src.compiler": "compile",
    "jax._src.interpreters.mlir": "compile",
    "jax._src.interpreters.partial_eval": "compile",
    "optax": "ops",
    "flax": "ops",
    "tensorflow": "ops",
    "tensorflow.python.data": "input",
    "tensorflow.python.autograph": "compile",
    "tensorflow.python.framework.func_graph": "compile",
    "tensorflow.python.eager.polymorphic_function.tracing_compilation": "compile",
    "tensorflow.python.eager.polymorphic_function": "model",
    "tensorflow.python.eager.backprop": "backward",
    "keras": "fit",
    "keras.src.trainers.data_adapters": "input",
    "keras.src.trainers.epoch_iterator": "input",
    "keras.src.callbacks": "callbacks",
    "keras.src.optimizers": "optimizer",
    "tf_keras": "fit",
    "tf_keras.src.engine.data_adapter": "input",
    "tf_keras.src.callbacks": "callbacks",
    "tf_keras.src.optimizers": "optimizer",
    "numpy": "arrays",
    "pandas": "arrays",
    "PIL": "arrays",
    "scipy": "arrays",
    "logging": "save",
    "json": "save",
    "pickle": "save",
}
_known: dict[str, str] = {}


def account_of(
    stack: Sequence[tuple[CodeType, Optional[int], dict[str, Any]]],
    is_own: Callable[[str], bool],
    compiled: Callable[[], bool],
) -> str:
    """`compiled`: whether the thread is in a compiled function, or compiles one."""
    for code, _, names in stack:
        if is_own(code.co_filename):
            break
        name = str(names.get("__name__", ""))
        found = _kept(name)
        if found == "ops" and name.startswith("jax") and compiled():
            return "model"
        if found:
            return found
    return "own"


def loads(stack: Sequence[tuple[CodeType, Optional[int], dict[str, Any]]]) -> bool:
    """Whether a loader or pipeline called what runs."""
    return any(_kept(str(names.get("__name__", ""))) == "input" for *_, names in stack)


def _kept(name: str) -> str:
    found = _known.get(name)
    if found is None:
        found = _known[name] = _of_module(name)
    return found


def _of_module(name: str) -> str:
    while name:
        if name in _MODULES:
            return _MODULES[name]
        name = name.rpartition(".")[0]
    return ""
