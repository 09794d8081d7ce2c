"""TensorFlow over several processes with one device each (ranks.py).

A script is that of several devices (tensorflow_adapter.py), whose ``STRATEGY`` is a
``tf.distribute.MultiWorkerMirroredStrategy``, made from ``TF_CONFIG``. Loss and
gradients are sums over all ranks, and the same in all; predictions are of the rows of
each.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
from pathlib import Path
from typing import Any, Mapping

from bakeoff_runner.adapter import Adapter, BuildRequest, ImportInfo
from bakeoff_runner.adapters.ranks import (
    PAUSED_S,
    Leader,
    Rank,
    free_addresses,
    leave,
)
from bakeoff_runner.adapters.tensorflow_adapter import TensorFlowAdapter
from bakeoff_runner.script import check_devices


class Ranked(Rank, TensorFlowAdapter):
    OF_ROWS = ("output",)

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        threads = self._take_share(threads)
        task = {"type": "worker", "index": self._rank}
        cluster = {"worker": self._meeting.split(",")}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
        atexit.register(leave)
        info = super().import_framework(options, threads)
        from tensorflow.python.eager import context

        one: Any = context.context()
        one.configure_coordination_service = functools.partial(
            one.configure_coordination_service,
            heartbeat_timeout_in_ms=1000 * PAUSED_S,
        )
        return info

    def build(self, request: BuildRequest) -> dict[str, Any]:
        effective = super().build(request)
        used = getattr(self._strategy(), "num_replicas_in_sync", 1)
        check_devices(self._file(), self._ranks, used, "parameters are")
        return {**effective, "devices": used, "processes": self._ranks}

    @staticmethod
    def is_broken(message: str) -> bool:
        words = "Collective ops is aborted", "CoordinationService", "errors::Cancelled"
        return any(word in message for word in words)


def needed(options: Mapping[str, str]) -> bool:
    return options.get("processes", "1") != "1"


def meeting(folder: Path, ranks: int) -> str:
    return ",".join(free_addresses(ranks))


def make() -> Adapter:
    return Leader(__name__)
