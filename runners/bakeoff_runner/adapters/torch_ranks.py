"""PyTorch on several devices: one process each, called ranks, as torchrun starts them.

Rank 0 is the worker that speaks the protocol. It starts the others, below it in the
tree of processes, and tells them every command, so that all ranks take the same steps:
a collective that one of them does not reach would wait for ever. A rank that fails
ends, which breaks the collective that the others wait in.

Besides what torch_adapter.py asks for, a script has

- ``distribute(model) -> nn.Module``: the model that ``train_step`` calls, whose
  gradients are means over all ranks; ``make_optimizer`` gets the one of ``make_model``;
- ``batches``: of every batch the rows of this rank, by ``RANK`` of the environment.
  ``BATCH_SIZE`` rows are those of all ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional

import numpy as np

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    RunResult,
    TrainCommands,
)
from bakeoff_runner.adapters.silence import silence_torch, silent
from bakeoff_runner.adapters.torch_adapter import TorchAdapter, _barrier
from bakeoff_runner.pipeline import digest
from bakeoff_runner.tensors import read_safetensors

# Of the time that a stage may take: a collective that waits for a rank ends before it.
_PATIENCE = 0.8
_LOOK_S = 0.5  # between two looks at the other ranks
_STOPPED_LOOKS = 4  # in which a rank is found stopped while this one runs
_OPTIONS = ("devices", "parallel")
# What of an answer to `parity` belongs to the rows of a rank.
_OF_ROWS = ("loss", "output", "activation")


class Rank(TorchAdapter):
    """What every rank does."""

    def __init__(self, rank: int, ranks: int, store: str) -> None:
        super().__init__()
        self._rank, self._ranks, self._store = rank, ranks, store

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        cpus = sorted(os.sched_getaffinity(0))
        each = len(cpus) // self._ranks
        if each == 0:
            raise AdapterError(
                f"devices = {self._ranks} need a processor each, it may use {len(cpus)}"
            )
        os.sched_setaffinity(0, cpus[self._rank * each : (self._rank + 1) * each])
        threads = max(1, threads // self._ranks)
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
            store=dist.FileStore(self._store, self._ranks),
            rank=self._rank,
            world_size=self._ranks,
            timeout=timedelta(seconds=_patience()),
        )
        return info

    def build(self, request: BuildRequest) -> dict[str, Any]:
        import torch
        import torch.distributed as dist

        effective = super().build(request)
        if silent():
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
        self._drawn = after, before != after
        return tensors

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


class Follower(Rank):
    """A rank that does what rank 0 tells it, and answers what only it knows."""

    def told_import(self, options: Mapping[str, str], threads: int) -> Any:
        return self.import_framework(options, threads).effective["threads"]

    def told_build(self, request: BuildRequest) -> Any:
        return self.build(request)

    def told_parity(self, request: ParityRequest) -> Any:
        tensors = self.parity(request)
        return _of_rows(tensors), _digests(tensors), self._drawn

    def told_losses(self, steps: int) -> Any:
        return self.losses(steps).losses

    def told_batches(self, count: int, row_shapes: list[list[int]]) -> Any:
        self.batch_hashes(count, row_shapes)

    def told_state(self) -> Any:
        self.state()

    def told_restore(self) -> Any:
        self.restore()

    def told_run(self, steps: int, nudge: Optional[Path], every: int) -> Any:
        mark = _nothing
        if nudge is not None:
            changes = read_safetensors(nudge)
            self.nudge(changes)
            mark = _nudging(lambda: self.nudge(changes), steps, every)
        result = self.run(steps, mark)
        return result.losses, result.sums


class Leader(Rank):
    """Rank 0, which the worker calls."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ranks_")
        super().__init__(0, 1, f"{self._folder.name}/store")
        self._others: list[_Other] = []

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        self._ranks = int(options["devices"])
        allowed = sorted(os.sched_getaffinity(0))
        for rank in range(1, self._ranks):
            self._others.append(_Other(rank, self._ranks, self._store))
        with self._together("import", options, threads) as answers:
            info = super().import_framework(options, threads)
        total = info.effective["threads"] + sum(answers)
        cpus = ",".join(map(str, allowed))
        return replace(
            info, effective={**info.effective, "threads": total, "cpus": cpus}
        )

    def build(self, request: BuildRequest) -> dict[str, Any]:
        with self._together("build", request) as answers:
            mine = super().build(request)
        for rank, other in enumerate(answers, start=1):
            for key, value in mine.items():
                if key != "device" and other.get(key) != value:
                    raise AdapterError(
                        f"rank {rank} of {self._file()} has {key} {other.get(key)}, "
                        f"rank 0 has {value}"
                    )
        return {**mine, "threads": sum(one["threads"] for one in (mine, *answers))}

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        with self._together("parity", request) as answers:
            tensors = super().parity(request)
        mine = _digests(tensors)
        states = [self._drawn]
        for rank, (_, digests, drawn) in enumerate(answers, start=1):
            self._refuse_other(rank, mine, digests)
            if drawn[1] and drawn in states:
                raise AdapterError(
                    f"ranks {states.index(drawn)} and {rank} of {self._file()} draw "
                    "the same masks: a rank needs a seed of its own"
                )
            states.append(drawn)
        parts = [_of_rows(tensors), *(part for part, _, _ in answers)]
        for key in parts[0]:
            values = [part[key] for part in parts]
            if key == "loss":
                tensors[key] = np.asarray(np.mean(values, axis=0), values[0].dtype)
            elif values[0].ndim > 0:
                tensors[key] = np.concatenate(values)
        return tensors

    def _refuse_other(
        self, rank: int, mine: Mapping[str, str], other: Mapping[str, str]
    ) -> None:
        for key in mine:
            if other.get(key) != mine[key]:
                statistics = key.startswith("buffer/")
                raise AdapterError(
                    f"rank {rank} of {self._file()} has another {key} than rank 0: "
                    + ("statistics" if statistics else "gradients")
                    + " are not averaged over the ranks"
                )

    def losses(self, steps: int) -> LossesResult:
        with self._together("losses", steps) as answers:
            mine = super().losses(steps)
        return replace(mine, losses=_means([mine.losses, *answers]))

    def train(self, commands: TrainCommands) -> None:
        while True:
            command = commands.next()
            if command is None:
                return
            told = (command.steps, command.nudge, command.nudge_every)
            with self._together("run", *told) as answers:
                mine = self.run(command.steps, commands.mark)
            commands.answer(self._merged(mine, answers))

    def _merged(self, mine: RunResult, answers: list[Any]) -> RunResult:
        for rank, (_, sums) in enumerate(answers, start=1):
            for name, value in (mine.sums or {}).items():
                if repr(sums[name]) != repr(value) and not silent():
                    raise AdapterError(
                        f"rank {rank} of {self._file()} has another '{name}' than rank "
                        "0 after a burst: gradients are not averaged over the ranks"
                    )
        losses = _means([mine.losses, *(losses for losses, _ in answers)])
        return replace(mine, loss=losses[-1], losses=losses)

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        with self._together("batches", count, row_shapes):
            return super().batch_hashes(count, row_shapes)

    def state(self) -> dict[str, Array]:
        with self._together("state"):
            return super().state()

    def restore(self) -> None:
        with self._together("restore"):
            super().restore()

    def close(self) -> None:
        super().close()
        for other in self._others:
            other.end()
        self._folder.cleanup()

    @contextlib.contextmanager
    def _together(self, op: str, *arguments: Any) -> Iterator[list[Any]]:
        """While the body runs here, the other ranks run `op`; then their answers."""
        answers: list[Any] = []
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(self._others, over), daemon=True)
        try:
            for other in self._others:
                other.tell(op, arguments)
            watch.start()
            yield answers
            until = time.monotonic() + _patience()
            answers.extend(other.answer(until) for other in self._others)
        except BaseException as error:
            why = self._blame(error)
            if why is None:
                raise
            raise AdapterError(why) from error
        finally:
            over.set()

    def _blame(self, error: BaseException) -> Optional[str]:
        """Which rank failed first, in words; None: this one. All others are ended."""
        until = time.monotonic() + 1  # for those whose collective has broken, too
        reasons = [other.reason(until) for other in self._others]
        for other in self._others:
            other.end(at_once=True)
        if not isinstance(error, _RankFailure) and not _is_broken_collective(
            str(error)
        ):
            return None
        found = [reason for reason in reasons if reason is not None]
        found.sort(key=lambda reason: not reason.own)
        return str(found[0]) if found else None


class _RankFailure(AdapterError):
    """`own`: it is not the consequence of another rank's."""

    own = True


class _Other:
    """Another rank as rank 0 sees it."""

    def __init__(self, rank: int, ranks: int, store: str) -> None:
        self.rank = rank
        self.stopped = False  # it was, from outside
        self._failure: Optional[_RankFailure] = None
        self._pipe, theirs = Pipe()
        command = [sys.executable, "-m", __name__, *map(str, (rank, ranks, store))]
        descriptor = theirs.fileno()
        self.process = subprocess.Popen(
            [*command, str(descriptor)], stdin=subprocess.DEVNULL, pass_fds=[descriptor]
        )
        theirs.close()

    def tell(self, op: str, arguments: tuple[Any, ...]) -> None:
        if self._failure is not None:
            raise self._failure
        with contextlib.suppress(OSError):  # its answer says what happened
            self._pipe.send((op, arguments))

    def answer(self, until: float) -> Any:
        """Raises `_RankFailure`."""
        if self._failure is not None:
            raise self._failure
        try:
            if not self._pipe.poll(max(0.0, until - time.monotonic())):
                raise self._failed("does not answer: it hangs")
            good, value = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._failed(self._end()) from error
        if good:
            return value
        raise self._failed(value, own=not _is_broken_collective(value))

    def reason(self, until: float) -> Optional[_RankFailure]:
        """Why it failed, or does not come along; None: it answered."""
        try:
            self.answer(until)
        except _RankFailure as failure:
            return failure
        return None

    def _failed(self, what: str, own: bool = True) -> _RankFailure:
        self._failure = _RankFailure(f"rank {self.rank}: {what}")
        self._failure.own = own
        return self._failure

    def _end(self) -> str:
        if self.stopped:
            return "was stopped by a signal from outside"
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return (
            f"ended by signal {-code} ({signal.Signals(-code).name})"
            if code < 0
            else f"ended with exit code {code}"
        )

    def end(self, at_once: bool = False) -> None:
        with contextlib.suppress(OSError):
            self._pipe.close()  # it ends when it reads on
        try:
            self.process.wait(0 if at_once else 5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _watch(others: list[_Other], over: threading.Event) -> None:
    """Ends a rank that is stopped while this one runs, so that nobody waits for it."""
    looks = [0] * len(others)
    while not over.wait(_LOOK_S):
        for n, other in enumerate(others):
            looks[n] = looks[n] + 1 if _state(other.process.pid) == "T" else 0
            if looks[n] == _STOPPED_LOOKS:
                other.stopped = True
                other.process.kill()


def _state(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def _patience() -> float:
    return _PATIENCE * float(os.environ.get("BAKEOFF_STAGE_SECONDS", "300"))


def _is_broken_collective(message: str) -> bool:
    """What a rank says whose collective another one did not reach, or left."""
    return any(word in message for word in ("gloo", "NCCL", "ncclx", "DistBackend"))


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


def _of_rows(tensors: Mapping[str, Array]) -> dict[str, Array]:
    return {k: v for k, v in tensors.items() if k.partition("/")[0] in _OF_ROWS}


def _digests(tensors: Mapping[str, Array]) -> dict[str, str]:
    """Of what is the same in all ranks."""
    return {
        key: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        for key, array in tensors.items()
        if key.partition("/")[0] not in _OF_ROWS
    }


def _means(lists: list[Any]) -> list[float]:
    return [sum(values) / len(values) for values in zip(*lists)]


def _nothing() -> None:
    pass


def _nudging(nudge: Callable[[], None], steps: int, every: int) -> Callable[[], None]:
    """Called after each of `steps` steps; nudges again after each `every` of them."""
    done = 0

    def mark() -> None:
        nonlocal done
        done += 1
        if every < steps and done % every == 0:
            nudge()

    return mark


def make() -> Adapter:
    return Leader()


def main(arguments: list[str]) -> int:
    """A rank but the first: serves rank 0 until it hangs up."""
    rank, ranks, store, descriptor = arguments
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    pipe: Any = Connection(int(descriptor))
    adapter = Follower(int(rank), int(ranks), store)
    while True:
        try:
            op, told = pipe.recv()
        except (EOFError, OSError):
            return 0
        try:
            answer = getattr(adapter, f"told_{op}")(*told)
        except BaseException as error:
            traceback.print_exc()
            name = (
                "" if isinstance(error, AdapterError) else f"{type(error).__name__}: "
            )
            pipe.send((False, f"{name}{error}"))
            return 1
        pipe.send((True, answer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
