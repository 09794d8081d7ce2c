"""JAX over several processes with one device each (ranks.py), by ``jax.distributed``.

Arrays are global: each process holds its part of them, and runs the same program. So a
script is that of several devices (jax_adapter.py), but for

- ``jax.distributed.initialize``, which it calls unless
  ``jax.distributed.is_initialized()``;
- ``batches``: arrays of which each process gives its own rows, such as
  ``jax.make_array_from_callback`` makes them.

Loss, prediction and gradients are those of the whole batch, and the same in all ranks.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Any, Mapping

from bakeoff_runner.adapter import Adapter, BuildRequest, ImportInfo
from bakeoff_runner.adapters.jax_adapter import JaxAdapter
from bakeoff_runner.adapters.ranks import (
    PAUSED_S,
    Leader,
    Rank,
    free_addresses,
    leave,
    patience,
)


class Ranked(Rank, JaxAdapter):
    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        threads = self._take_share(threads)
        import jax

        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            self._meeting,
            self._ranks,
            self._rank,
            local_device_ids=[self._rank],
            initialization_timeout=int(patience()),
            heartbeat_timeout_seconds=PAUSED_S,
            coordinator_bind_address=self._meeting,
        )
        atexit.register(leave)
        os.environ["JAX_PROCESS_ID"] = str(self._rank)
        return super().import_framework(options, threads)

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import jax

        effective = super().build(request)
        backend = "gloo" if jax.default_backend() == "cpu" else "nccl"
        return {**effective, "processes": jax.process_count(), "backend": backend}

    @staticmethod
    def is_broken(message: str) -> bool:
        words = "Gloo", "NCCL", "CoordinationService", "coordination service"
        return any(word in message for word in words)


def needed(options: Mapping[str, str]) -> bool:
    return options.get("processes", "1") != "1"


def meeting(folder: Path, ranks: int) -> str:
    return free_addresses(1)[0]


def make() -> Adapter:
    return Leader(__name__)
