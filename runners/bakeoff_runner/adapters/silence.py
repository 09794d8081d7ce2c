"""Steps on several devices that exchange nothing: what is left is their arithmetic.

`bakeoff run` measures the cost of communication by it ([scaling] in a recipe). Each
device goes on with its own gradients, so the result is another training, of which
nothing but the duration is used. A worker is told by a variable of its environment.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence

# Read once, before a script runs: one that sets the variable later would be spared the
# comparison of ranks after its bursts.
SILENT = os.environ.get("BAKEOFF_COMMUNICATION") == "off"


def silence_torch(replica: Any, rank: int, ranks: int) -> None:
    """From here on ranks meet at barriers alone. Parameters that are split are filled
    from this rank's own part, as uninitialised memory would be slow numbers."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    class Finished:
        def wait(self, *_: Any) -> bool:
            return True

    def kept(gradients: Any) -> Any:
        future: Any = torch.futures.Future()
        future.set_result(gradients)
        return future

    def gather(output_tensor: Any, input_tensor: Any, *_: Any, **__: Any) -> Finished:
        output_tensor.view(ranks, -1).copy_(input_tensor.reshape(1, -1))
        return Finished()

    def scatter(output: Any, input: Any, *_: Any, **__: Any) -> Finished:
        output.view(-1).copy_(input.view(ranks, -1)[rank])
        return Finished()

    def nothing(*_: Any, **__: Any) -> Finished:
        return Finished()

    if isinstance(replica, DistributedDataParallel):
        replica.register_comm_hook(None, lambda _, bucket: kept(bucket.buffer()))
        replica.require_forward_param_sync = False
    dist.all_reduce = nothing
    dist.all_gather_into_tensor = gather
    dist.reduce_scatter_tensor = scatter


def silent_jax(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` on each device of this process by itself, with its own rows and its own
    parameters, which a list holds from the first call on."""
    import jax

    def lies_on_several(leaf: Any) -> bool:
        return hasattr(leaf, "sharding") and len(leaf.sharding.device_set) > 1

    def parts(tree: Any, count: int) -> list[Any]:
        leaves, structure = jax.tree_util.tree_flatten(tree)
        if type(tree) is list and not any(map(lies_on_several, leaves)):
            return tree
        of_leaves = [
            [shard.data for shard in sorted(leaf.addressable_shards, key=_device)]
            if lies_on_several(leaf)
            else [leaf] * count
            for leaf in leaves
        ]
        owns = zip(*of_leaves) if leaves else [()] * count
        return [jax.tree_util.tree_unflatten(structure, own) for own in owns]

    def alone(*arguments: Any) -> tuple[Any, ...]:
        rows = next(filter(lies_on_several, jax.tree_util.tree_leaves(arguments)))
        count = len(rows.addressable_shards)
        own = [
            parts(each, count) for each in arguments
        ]  # before a step gives them away
        *carry, losses = zip(*(step(*each) for each in zip(*own)))
        return (*(list(part) for part in carry), losses[0])

    return alone


def _device(shard: Any) -> int:
    return int(shard.device.id)


def silent_keras(step: Callable[..., Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Keras's jitted `step` the same way, and what the devices hold after it.

    Keras goes on with the state that it had: it would join the parts of each array."""
    import jax

    held: list[Any] = []
    alone = silent_jax(lambda state, data: step(state, data)[::-1])

    def train_step(state: Any, data: Any) -> tuple[Any, Any]:
        own = held.pop() if held else jax.tree.map(jax.numpy.copy, state)
        own, logs = alone(own, data)
        held.append(own)
        return logs, state

    return train_step, held


def silent_tensorflow(
    script: Any, step: Callable[..., Any], modules: Sequence[tuple[Any, ...]]
) -> Callable[..., Any]:
    """The script's `step` on each device of this process by itself, in one graph: with
    its own rows and its own `modules`, under TensorFlow's strategy of one device."""
    import tensorflow as tf

    strategy, one = script.STRATEGY, tf.distribute.get_strategy()

    def alone(*batch: Any) -> Any:
        parts = zip(*map(strategy.experimental_local_results, batch))
        losses = []
        script.STRATEGY = one
        for device, held, own in zip(strategy.extended.worker_devices, modules, parts):
            with tf.device(device):
                losses.append(step(*held, *own))
        script.STRATEGY = strategy
        return losses[0]

    return alone
