"""PyTorch on several devices: one process each (ranks.py), as torchrun starts them.

Besides what torch_adapter.py asks for, a script has

- ``distribute(model) -> nn.Module``: the model that ``train_step`` calls, whose
  gradients are means over all ranks; ``make_optimizer`` gets the one of ``make_model``;
- ``batches``: of every batch the rows of this rank, by ``RANK`` of the environment.
  ``BATCH_SIZE`` rows are those of all ranks.
"""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional

import numpy as np

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
)
from bakeoff_runner.adapters.ranks import Leader, Rank, patience
from bakeoff_runner.adapters.silence import SILENT, silence_torch
from bakeoff_runner.adapters.torch_adapter import TorchAdapter, _barrier
from bakeoff_runner.pipeline import digest

_OPTIONS = ("devices", "parallel")


class Ranked(Rank, TorchAdapter):
    OF_ROWS = ("loss", "output", "activation")

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        threads = self._take_share(threads)
        for name in ("OMP", "MKL", "OPENBLAS"):
            os.environ[f"{name}_NUM_THREADS"] = str(threads)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on one host
        for name in ("RANK", "LOCAL_RANK"):
            os.environ[name] = str(self._rank)
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            os.environ[name] = str(self._ranks)
        rest = {key: value for key, value in options.items() if key not in _OPTIONS}
        info = super().import_framework(rest, threads)
        import torch
        import torch.distributed as dist

        cuda = torch.cuda.is_available()
        if cuda and torch.cuda.device_count() < self._ranks:
            there = torch.cuda.device_count()
            raise AdapterError(f"devices = {self._ranks}, but torch sees {there} GPUs")
        if cuda:
            torch.cuda.set_device(self._rank)
        dist.init_process_group(
            "nccl" if cuda else "gloo",
            store=dist.FileStore(self._meeting, self._ranks),
            rank=self._rank,
            world_size=self._ranks,
            timeout=timedelta(seconds=patience()),
        )
        return info

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import torch
        import torch.distributed as dist

        effective = super().build(request)
        if SILENT:
            silence_torch(self._replica, self._rank, self._ranks)
            effective["communication"] = "off"
        weights = {p.dtype for p in self._model.parameters() if p.requires_grad}
        names = [str(dtype).removeprefix("torch.") for dtype in weights]
        return {
            **effective,
            "devices": dist.get_world_size(),
            "parallel": _kind(self._replica),
            "backend": dist.get_backend(),
            "threads": torch.get_num_threads(),
            "master_weights": "+".join(sorted(names)),
            "reduced_gradient": _reduced(self._replica),
        }

    def _distributed(self, model: Any) -> Any:
        self._require({"distribute": "distribute(model)"}, "distribute")
        return self._the_script().distribute(model)

    def _share(self, rows: int) -> int:
        if rows % self._ranks != 0:
            raise AdapterError(f"{rows} rows do not divide by {self._ranks} devices")
        return rows // self._ranks

    def _rows(self, first: int, count: int) -> tuple[Any, ...]:
        share = self._share(count)
        return super()._rows(first + self._rank * share, share)

    def _seen(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Each batch, of which this rank has its part and no more."""
        size = int(self._the_script().BATCH_SIZE)
        share = self._share(size)
        for batch in batches:
            if len(batch[0]) != share:
                raise AdapterError(
                    f"rank {self._rank} of {self._file()} trains on {len(batch[0])} "
                    f"rows of a batch of {size}, not on {share}: the batch is not "
                    f"shared among {self._ranks} devices"
                )
            yield batch

    def _finish(self) -> None:
        """A step is over when all ranks have updated their parameters."""
        import torch.distributed as dist

        _barrier()
        dist.barrier()

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        before = _random_state()
        tensors = super().parity(request)
        after = _random_state()
        self._drawn = None if before == after else after
        return tensors

    def drawn(self) -> Optional[str]:
        return self._drawn

    @staticmethod
    def is_broken(message: str) -> bool:
        return any(word in message for word in ("gloo", "NCCL", "ncclx", "DistBackend"))

    def losses(self, steps: int) -> LossesResult:
        self._batches = None
        first = next(iter(self._stream()))
        shapes = [list(tensor.shape[1:]) for tensor in first]
        self._refuse_same_rows(digest([t.cpu().numpy() for t in first], shapes))
        return super().losses(steps)

    def _refuse_same_rows(self, mine: str) -> None:
        import torch
        import torch.distributed as dist

        every: list[Any] = [None] * self._ranks
        dist.all_gather_object(every, mine)
        size = self._share(int(self._the_script().BATCH_SIZE))
        parts = [self._host_rows(rank * size, size) for rank in range(self._ranks)]
        for rank in range(1, self._ranks):
            twin = every.index(every[rank])
            pairs = zip(parts[rank], parts[twin])
            if twin < rank and not all(torch.equal(a, b) for a, b in pairs):
                raise AdapterError(
                    f"ranks {twin} and {rank} of {self._file()} train on the same rows"
                )

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        """Of the rows of all ranks, in their order."""
        self._batches = None
        stream = self._stream()
        hashes = [
            digest([self._gathered(tensor) for tensor in next(stream)], row_shapes)
            for _ in range(count)
        ]
        self._batches = None
        return hashes

    def _gathered(self, tensor: Any) -> Array:
        import torch
        import torch.distributed as dist

        parts = [torch.empty_like(tensor) for _ in range(self._ranks)]
        dist.all_gather(parts, tensor.contiguous())
        return np.concatenate([part.cpu().numpy() for part in parts])


def _reduced(replica: Any) -> str:
    """The dtype in which gradients are added up, and what else is done to them."""
    policies = [
        (p.dtype if policy.reduce_dtype is None else policy.reduce_dtype)
        for policy, p in _shards(replica)
    ]
    if policies:
        return "+".join(sorted({str(d).removeprefix("torch.") for d in policies}))
    tell = getattr(replica, "_get_ddp_logging_data", None)
    if tell is None:
        return "unknown"
    told = tell()
    hook = told.get("comm_hook", "")
    dtype = {"float": "float32", "double": "float64"}.get(
        told["dtypes"], told["dtypes"]
    )
    return f"{dtype} by {hook}" if hook else dtype


def _kind(replica: Any) -> str:
    return "fully_shard" if any(_shards(replica)) else type(replica).__name__


def _shards(replica: Any) -> Iterator[tuple[Any, Any]]:
    """The policy of each group of parameters that is split, and one of them."""
    for module in replica.modules():
        state = getattr(module, "_get_fsdp_state", lambda: None)()
        group = getattr(state, "_fsdp_param_group", None)
        if group is not None:
            yield group.mp_policy, group.fsdp_params[0].sharded_param


def _random_state() -> str:
    import torch

    state = torch.get_rng_state().numpy().tobytes()
    if torch.cuda.is_available():
        state += torch.cuda.get_rng_state().numpy().tobytes()
    return hashlib.sha256(state).hexdigest()


def meeting(folder: Path, ranks: int) -> str:
    return str(folder / "store")


def make() -> Adapter:
    return Leader(__name__)
