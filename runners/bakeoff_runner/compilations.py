"""How often the frameworks of this process have compiled or traced a function.

A request that compiles takes seconds instead of milliseconds, and a percentile hides
it. So what is served after the warm-up should compile nothing, and a count says whether
it did. Each framework counts otherwise: JAX tells listeners, of TensorFlow every
function that is alive knows its traces, torch.compile counts graphs. Nothing is
imported for it, and what compiles nothing counts 0.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

__all__ = ["compiled_so_far"]

_heard: list[float] = []  # seconds of each compilation by JAX since the first question
_listens: list[bool] = []


def compiled_so_far() -> int:
    """The difference of two calls is what was compiled between them."""
    return _by_jax() + _by_tensorflow() + _by_torch()


def _by_jax() -> int:
    monitoring = sys.modules.get("jax.monitoring")
    if monitoring is not None and not _listens:
        monitoring.register_event_duration_secs_listener(_hear)
        _listens.append(True)
    return len(_heard)


def _hear(event: str, seconds: float, **_: Any) -> None:
    if event.endswith("backend_compile_duration"):
        _heard.append(seconds)


def _by_tensorflow() -> int:
    if "tensorflow" not in sys.modules:
        return 0
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    kind = polymorphic_function.Function
    functions = [one for one in gc.get_objects() if type(one) is kind]
    return sum(int(one.experimental_get_tracing_count()) for one in functions)


def _by_torch() -> int:
    if "torch._dynamo.utils" not in sys.modules:
        return 0
    counters = sys.modules["torch._dynamo.utils"].counters
    return int(counters["stats"].get("unique_graphs", 0))
