"""The peak, in bytes, that each framework's own allocator tells, or why it does not.

A framework counts on its accelerators; on the CPU it takes memory from the system's
malloc, whose peak is seen from outside (resident memory).
"""

from __future__ import annotations

from typing import Union

Peak = Union[int, str]  # bytes, or why there are none


def torch_peak() -> Peak:
    import torch

    if not torch.cuda.is_available():
        return "torch's allocator keeps no count on the CPU"
    return int(torch.cuda.max_memory_allocated())


def jax_peak() -> Peak:
    import jax

    device = jax.devices()[0]
    stats = device.memory_stats() or {}
    peak = stats.get("peak_bytes_in_use")
    if peak is None:
        return f"XLA keeps no count on the {device.platform.upper()}"
    return int(peak)


def tensorflow_peak() -> Peak:
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return "TensorFlow keeps no count on the CPU"
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
