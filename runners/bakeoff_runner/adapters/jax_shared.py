"""What the adapter of JAX shares with that of Keras on JAX.

JAX returns before it has computed. Several devices of one CPU share its threads, and
with many calls under way no two of them meet in an all-reduce any more: `paced` keeps
few of them under way there. Proofs need the mathematics of a script and not its
speed, so `quick_jit` compiles without XLA's optimizations on a CPU. Arrays that lie on
several devices are read part by part, as what each device really holds has to be
proven.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from bakeoff_runner.adapter import Array, Peak
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


# XLA's devices on a CPU share one pool of threads. Calls that run ahead fill it, until
# no two devices meet in an all-reduce: JAX 0.10 aborts with 64 of them under way.
CALLS_UNDER_WAY = 8


def use_devices(count: int) -> None:
    """To call before JAX is used: without an accelerator it makes `count` devices."""
    import jax

    if count > 1:
        jax.config.update("jax_num_cpu_devices", count)


def paced(
    mark: Callable[[], None], kept: Sequence[Any], devices: int
) -> Callable[[], None]:
    """`mark`, which waits where too many calls are under way; `kept`: their losses."""
    import jax

    if devices == 1 or jax.default_backend() != "cpu":
        return mark

    def mark_and_wait() -> None:
        mark()
        if len(kept) >= CALLS_UNDER_WAY:
            kept[-CALLS_UNDER_WAY].block_until_ready()

    return mark_and_wait


def devices_of(array: Any) -> int:
    """How many devices hold it, or a part of it; 1 of an array on the host."""
    return len(array.sharding.device_set) if hasattr(array, "sharding") else 1


def parts_of(array: Any) -> int:
    """How many parts of it devices hold: 1 where each holds all of it."""
    if not hasattr(array, "sharding"):
        return 1
    held = array.sharding.devices_indices_map(array.shape)
    return len(set(map(str, held.values())))


def as_held(array: Any, axis: int) -> Array:
    """What devices hold of it, joined along `axis` in the order of the devices."""
    import numpy as np

    if devices_of(array) == 1:
        return np.asarray(array)
    shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
    held = np.concatenate([np.asarray(shard.data) for shard in shards], axis)
    if array.is_fully_addressable:
        return held
    from jax.experimental import multihost_utils

    return np.concatenate(multihost_utils.process_allgather(held), axis)


def gathered(array: Any) -> Array:
    """A copy of all of it; where other processes hold parts, all have to ask."""
    import numpy as np

    if getattr(array, "is_fully_addressable", True) or array.is_fully_replicated:
        return np.array(array)
    from jax.experimental import multihost_utils

    return np.array(multihost_utils.process_allgather(array, tiled=True))


def put(array: Any, sharding: Any) -> Any:
    """The array where its sharding says, of which other processes may have parts."""
    import jax
    import numpy as np

    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        bits = put(jax.random.key_data(array), sharding)
        return jax.random.wrap_key_data(bits, impl=jax.random.key_impl(array))
    host = np.asarray(array)
    return jax.make_array_from_callback(host.shape, sharding, lambda part: host[part])


def moved(array: Any, change: Array) -> Any:
    """Their sum, where the array lies. No process asks another one."""
    import numpy as np

    if array.is_fully_addressable or array.is_fully_replicated:
        return put(np.asarray(array) + change, array.sharding)
    return array + put(change, array.sharding)
