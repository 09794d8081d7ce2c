"""What the adapter of JAX shares with that of Keras on JAX."""

from __future__ import annotations

import functools
from typing import Any, Callable

from bakeoff_runner.adapter import Peak
from bakeoff_runner.transfers import Arrays, Device

# XLA compiles a step for a CPU with these in a quarter of the time.
_QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


def quick_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled function, with XLA's optimizations left out where it runs on a CPU.

    For proofs of a script's mathematics, in double precision or over many masks:
    optimized anew it would prove no more.
    """
    import jax

    compiled: Callable[..., Any] = jax.jit(function, **_quick_options())
    return compiled


@functools.lru_cache(maxsize=1)
def _quick_options() -> dict[str, Any]:
    """Nothing where this JAX does not know them."""
    import jax

    if jax.default_backend() != "cpu":
        return {}
    options: dict[str, Any] = {"compiler_options": _QUICK}
    try:
        jax.jit(lambda x: x, **options)(0)
    except (TypeError, RuntimeError):
        return {}
    return options


@functools.lru_cache(maxsize=1)
def _compiled() -> list[float]:
    """Seconds of each compilation since the first call."""
    import jax

    heard: list[float] = []

    def hear(event: str, seconds: float, **_: Any) -> None:
        if event.endswith("backend_compile_duration"):
            heard.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(hear)
    return heard


def jax_compilations() -> int:
    return len(_compiled())


def jax_peak() -> Peak:
    import jax

    device = jax.devices()[0]
    stats = device.memory_stats() or {}
    peak = stats.get("peak_bytes_in_use")
    if peak is None:
        return f"XLA keeps no count on the {device.platform.upper()}"
    return int(peak)


def jax_device() -> Device:
    import jax

    (jax.device_put(0) + 1).block_until_ready()  # behind all that went before
    return Device(jax.device_put, jax.block_until_ready)


def jax_arrays() -> Arrays:
    import jax
    import numpy as np

    return {type(jax.numpy.zeros(())): np.asarray}
