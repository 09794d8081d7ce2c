"""Training in one process per device; what is the same for every framework.

Processes (*ranks*) take the same steps, and wait for each other in collectives: one
that does not come, because it failed, ended, hangs or was stopped, holds up all others,
whose frameworks then say that a connection broke, or nothing. Which one is at fault,
only who sees all of them can say. So rank 0, the worker, which speaks the protocol,
starts the others below it in the tree of processes, tells them every command, watches
them meanwhile, takes their answers, and compares what must be the same in all.

A framework that has such a mode has a module ``<framework>_ranks`` with

- ``class Ranked(Rank, ...)``: its adapter in one of the processes;
- ``needed(options)``, where devices may share a process, too: whether they do not;
- ``meeting(folder, ranks)``: where they find each other, as text;
- ``make()``, which returns ``Leader(__name__)``.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from abc import abstractmethod
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import numpy as np

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    Peak,
    RunCommand,
    RunResult,
    TrainCommands,
    Transfer,
)
from bakeoff_runner.adapters.silence import SILENT
from bakeoff_runner.tensors import read_safetensors

# Of the time that a stage may take: a collective that waits for a rank ends before it,
# and if the framework knows no such limit, the ranks that do not answer are ended.
_PATIENCE, _END = 0.8, 0.85
# Ranks are paused while other contenders take their turns or start: for frameworks that
# count heartbeats. That a rank is gone is seen here.
PAUSED_S = 3600
_LOOK_S = 0.5  # between two looks at the other ranks
_STOPPED_LOOKS = 4  # in which a rank is found stopped while this one runs
_HANGS = "does not answer: it hangs"


class Rank(Adapter):
    """A framework's adapter in one of several processes, each with its device."""

    # What of an answer to `parity` belongs to the rows of a rank; the rest is the same
    # in all of them.
    OF_ROWS: tuple[str, ...] = ()

    def __init__(self, rank: int, ranks: int, meeting: str) -> None:
        super().__init__()
        self._rank, self._ranks, self._meeting = rank, ranks, meeting

    def _take_share(self, threads: int) -> int:
        """Goes to this rank's processors; how many of the threads are its own.

        For a proof alone there may be fewer processors than ranks."""
        cpus = sorted(os.sched_getaffinity(0))
        each = max(1, len(cpus) // self._ranks)
        first = self._rank * each % len(cpus)
        os.sched_setaffinity(0, cpus[first : first + each])
        return max(1, threads // self._ranks)

    @staticmethod
    @abstractmethod
    def is_broken(message: str) -> bool:
        """Whether a rank says this whose collective another one left or missed."""

    def drawn(self) -> Optional[str]:
        """The state of random numbers of this rank after the last proof, if any."""
        return None


class _Follower:
    """A rank that does what rank 0 tells it, and answers what only it knows."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def told_import(self, options: Mapping[str, str], threads: int) -> Any:
        return self._rank.import_framework(options, threads).effective["threads"]

    def told_build(self, request: BuildRequest) -> Any:
        return self._rank.build(request)

    def told_parity(self, request: ParityRequest) -> Any:
        tensors = self._rank.parity(request)
        parts = _of_rows(tensors, self._rank)
        return parts, _digests(tensors, parts), self._rank.drawn()

    def told_losses(self, steps: int) -> Any:
        return self._rank.losses(steps).losses

    def told_batches(self, count: int, row_shapes: list[list[int]]) -> Any:
        self._rank.batch_hashes(count, row_shapes)

    def told_state(self) -> Any:
        self._rank.state()

    def told_restore(self) -> Any:
        self._rank.restore()

    def told_run(self, steps: int, nudge: Optional[Path], every: int) -> Any:
        mark = _nothing
        if nudge is not None:
            changes = read_safetensors(nudge)
            self._rank.nudge(changes)
            mark = _nudging(lambda: self._rank.nudge(changes), steps, every)
        result = self._rank.run(steps, mark)
        return result.losses, result.sums


class Leader(Adapter):
    """Rank 0, which the worker calls. `module`: that of the framework's ranks."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._folder = tempfile.TemporaryDirectory(prefix="ranks_")
        self._mine: Rank
        self._script = ""
        self._others: list[_Other] = []

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        ranks = int(options["devices"])
        allowed = sorted(os.sched_getaffinity(0))
        kind = importlib.import_module(self._module)
        meeting = kind.meeting(Path(self._folder.name), ranks)
        self._mine = kind.Ranked(0, ranks, meeting)
        for rank in range(1, ranks):
            words = self._module, rank, ranks, meeting
            self._others.append(_Other(rank, list(map(str, words)), kind.Ranked))
        with self._together("import", options, threads) as answers:
            info = self._mine.import_framework(options, threads)
        total = info.effective["threads"] + sum(answers)
        cpus = ",".join(map(str, allowed))
        return replace(
            info, effective={**info.effective, "threads": total, "cpus": cpus}
        )

    def build(self, request: BuildRequest) -> dict[str, Any]:
        self._script = request.script.name
        with self._together("build", request) as answers:
            mine = self._mine.build(request)
        for rank, other in enumerate(answers, start=1):
            for key, value in mine.items():
                if key != "device" and other.get(key) != value:
                    raise AdapterError(
                        f"rank {rank} of {self._script} has {key} {other.get(key)}, "
                        f"rank 0 has {value}"
                    )
        if "threads" in mine:
            mine["threads"] = sum(one["threads"] for one in (mine, *answers))
        return mine

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        with self._together("parity", request) as answers:
            tensors = self._mine.parity(request)
        parts = [_of_rows(tensors, self._mine), *(part for part, _, _ in answers)]
        mine, drawn = _digests(tensors, parts[0]), [self._mine.drawn()]
        for rank, (_, digests, state) in enumerate(answers, start=1):
            self._refuse_other(rank, mine, digests)
            if state is not None and state in drawn:
                raise AdapterError(
                    f"ranks {drawn.index(state)} and {rank} of {self._script} draw "
                    "the same masks: a rank needs a seed of its own"
                )
            drawn.append(state)
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
                    f"rank {rank} of {self._script} has another {key} than rank 0: "
                    + ("statistics" if statistics else "gradients")
                    + " are not averaged over the ranks"
                )

    def losses(self, steps: int) -> LossesResult:
        with self._together("losses", steps) as answers:
            mine = self._mine.losses(steps)
        return replace(mine, losses=_means([mine.losses, *answers]))

    def train(self, commands: TrainCommands) -> None:
        while True:
            command = commands.next()
            if command is None:
                return
            commands.answer(self._burst(command, commands.mark))

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        return self._burst(RunCommand(steps), mark)

    def _burst(self, command: RunCommand, mark: Callable[[], None]) -> RunResult:
        told = (command.steps, command.nudge, command.nudge_every)
        with self._together("run", *told) as answers:
            mine = self._mine.run(command.steps, mark)
        sums_of_all = {} if SILENT else mine.sums or {}
        for rank, (_, sums) in enumerate(answers, start=1):
            for name, value in sums_of_all.items():
                if repr(sums[name]) != repr(value):
                    raise AdapterError(
                        f"rank {rank} of {self._script} has another '{name}' than rank "
                        "0 after a burst: gradients are not averaged over the ranks"
                    )
        losses = _means([mine.losses, *(losses for losses, _ in answers)])
        return replace(mine, loss=losses[-1], losses=losses)

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        with self._together("batches", count, row_shapes):
            return self._mine.batch_hashes(count, row_shapes)

    def state(self) -> dict[str, Array]:
        with self._together("state"):
            return self._mine.state()

    def restore(self) -> None:
        with self._together("restore"):
            self._mine.restore()

    def nudge(self, changes: Mapping[str, Array]) -> None:
        self._mine.nudge(changes)  # the others read them with their `run`

    def rates(self, steps: Sequence[int]) -> Optional[list[float]]:
        return self._mine.rates(steps)

    def allocator_peak(self) -> Peak:
        return self._mine.allocator_peak()

    def compilations(self) -> int:
        return self._mine.compilations()

    def transfer(self) -> Optional[Transfer]:
        return self._mine.transfer()

    def processes(self) -> list[int]:
        return [other.process.pid for other in self._others]

    def close(self) -> None:
        self._mine.close()
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
            until = time.monotonic() + patience()
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
        if not isinstance(error, _RankFailure) and not self._mine.is_broken(str(error)):
            return None
        found = [reason for reason in reasons if reason is not None]
        found.sort(key=lambda reason: not reason.own)
        return str(found[0]) if found else None


class _RankFailure(AdapterError):
    """`own`: it is not the consequence of another rank's."""

    own = True


class _Other:
    """Another rank as rank 0 sees it."""

    def __init__(self, rank: int, words: list[str], kind: type[Rank]) -> None:
        self.rank = rank
        self.ended = ""  # why this rank ended it
        self._kind = kind
        self._failure: Optional[_RankFailure] = None
        self._pipe, theirs = Pipe()
        descriptor = theirs.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, *words, str(descriptor)],
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
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
                raise self._failed(_HANGS)
            good, value = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._failed(self._end()) from error
        if good:
            return value
        raise self._failed(value, own=not self._kind.is_broken(value))

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
        if self.ended:
            return self.ended
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        return (
            f"ended by signal {-code} ({signal.Signals(-code).name})"
            if code < 0
            else f"ended with exit code {code}"
        )

    def has_answered(self) -> bool:
        """Or has hung up."""
        with contextlib.suppress(OSError):
            return self._failure is not None or self._pipe.poll()
        return True

    def end_for(self, why: str) -> None:
        self.ended = self.ended or why
        self.process.kill()

    def end(self, at_once: bool = False) -> None:
        with contextlib.suppress(OSError):
            self._pipe.close()  # it ends when it reads on
        try:
            self.process.wait(0 if at_once else 5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _watch(others: list[_Other], over: threading.Event) -> None:
    """Ends a rank for which this one would wait for ever."""
    looks = [0] * len(others)
    until = time.monotonic() + _END * _stage_seconds()
    while not over.wait(_LOOK_S):
        for n, other in enumerate(others):
            looks[n] = looks[n] + 1 if _state(other.process.pid) == "T" else 0
            if looks[n] == _STOPPED_LOOKS:
                other.end_for("was stopped by a signal from outside")
            elif time.monotonic() > until and not other.has_answered():
                other.end_for(_HANGS)


def _state(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def patience() -> float:
    """Seconds that a rank waits for the others."""
    return _PATIENCE * _stage_seconds()


def _stage_seconds() -> float:
    return float(os.environ.get("BAKEOFF_STAGE_SECONDS", "300"))


def _of_rows(tensors: Mapping[str, Array], rank: Rank) -> dict[str, Array]:
    return {k: v for k, v in tensors.items() if k.partition("/")[0] in rank.OF_ROWS}


def _digests(tensors: Mapping[str, Array], of_rows: Mapping[str, Any]) -> Any:
    """Of what is the same in all ranks."""
    return {
        key: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        for key, array in tensors.items()
        if key not in of_rows
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


def free_addresses(count: int) -> list[str]:
    """Of this machine alone, at which nobody listens yet.

    Seconds pass until a framework listens there. So they lie below the range from which
    the kernel gives a port to everyone who asks for any: nobody gets one by chance.
    """
    below = range(10_000, _first_of_any())
    sockets: list[socket.socket] = []
    with contextlib.ExitStack() as stack:
        for port in [*random.SystemRandom().sample(below, len(below)), *count * [0]]:
            if len(sockets) == count:
                break
            with contextlib.suppress(OSError):  # somebody is there
                one = stack.enter_context(socket.socket())
                one.bind(("127.0.0.1", port))
                sockets.append(one)
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def _first_of_any() -> int:
    with contextlib.suppress(OSError):
        path = Path("/proc/sys/net/ipv4/ip_local_port_range")
        return int(path.read_text().split()[0])
    return 0


def leave(code: int = 0) -> None:
    """Ends this process at once. Frameworks would wait for all ranks, minutes for one
    that is gone; rank 0 ends the others."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: list[str]) -> int:
    """A rank but the first: serves rank 0 until it hangs up."""
    module, rank, ranks, meeting, descriptor = arguments
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    pipe: Any = Connection(int(descriptor))
    kind = importlib.import_module(module)
    follower = _Follower(kind.Ranked(int(rank), int(ranks), meeting))
    while True:
        try:
            op, told = pipe.recv()
        except (EOFError, OSError):
            return 0
        try:
            answer = getattr(follower, f"told_{op}")(*told)
        except BaseException as error:
            traceback.print_exc()
            name = (
                "" if isinstance(error, AdapterError) else f"{type(error).__name__}: "
            )
            pipe.send((False, f"{name}{error}"))
            return 1
        pipe.send((True, answer))


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
