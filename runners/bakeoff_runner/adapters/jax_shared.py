"""What the adapter of JAX shares with that of Keras on JAX."""

from __future__ import annotations

from bakeoff_runner.adapter import Peak
from bakeoff_runner.transfers import Arrays, Device


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
