"""Steps on several devices that exchange nothing: what is left is their arithmetic.

`bakeoff run` measures the cost of communication by it ([scaling] in a recipe). Each
device goes on with its own gradients, so the result is another training, of which
nothing but the duration is used. A worker is told by a variable of its environment.
"""

from __future__ import annotations

import os
from typing import Any, Callable


def silent() -> bool:
    return os.environ.get("BAKEOFF_COMMUNICATION") == "off"


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


def silent_jax(step: Callable[..., Any], devices: int) -> Callable[..., Any]:
    """`step` on each device by itself, with its own rows and its own parameters, which
    a list holds from the first call on."""
    import jax

    def share(tree: Any, device: int) -> Any:
        def own(leaf: Any) -> Any:
            shards = getattr(leaf, "addressable_shards", ())
            if len(shards) < devices:
                return leaf
            return sorted(shards, key=lambda shard: shard.device.id)[device].data

        return jax.tree_util.tree_map(own, tree)

    def whole(tree: Any) -> bool:
        leaves = jax.tree_util.tree_leaves(tree)
        return any(len(getattr(x, "addressable_shards", ())) == devices for x in leaves)

    def alone(*arguments: Any) -> tuple[Any, ...]:
        parts = [  # before a step gives its arguments away
            [share(part, n) for n in range(devices)] if whole(part) else part
            for part in arguments
        ]
        *carry, losses = zip(*(step(*own) for own in zip(*parts)))
        return (*(list(part) for part in carry), losses[0])

    return alone
