"""Test equipment: a framework that misbehaves on request.

``--framework fake`` needs nothing but the standard library. Its "model" is one
parameter ``w``, loss ``(w - 3)^2 / 2``, plain SGD with learning rate 0.1 from w = 0,
so that every number it gives can be checked by hand. It reads no file unless told to.

Options of ``import`` (all strings; a stage is import, build, parity, losses, run,
serve or close; faults happen at the start of their stage):

=================  ==================================================================
``step_ms``        milliseconds per step (default 0: as fast as the loop goes)
``busy``           "1": steps burn processor time instead of sleeping
``work``           units of real work a step, some 50 microseconds each: a loop of
                   arithmetic, and a copy of 256 KiB
``drift``          each step takes this fraction longer than the last, e.g. "0.01"
``nan_step``       from this step on (1 = first after build) losses are NaN
``offset``         added to every loss and gradient: a parity gate must notice
``crash_at``       stage to crash in; ``crash_step``: step to crash at
``crash_how``      raise (default), exit (code 1), silent (code 0), abort, segv, kill
``hang_at``        stage to hang in; ``hang_step``: step to hang at
``ignore_sigterm`` "1": from import on
``flood_mb``       megabytes to write to stdout and to stderr, each, at ``flood_at``
                   (default import)
``grandchild``     plain, setsid or orphan (setsid, and its parent is gone): a process
                   that sleeps for an hour, started at import; its pid is in effective.
                   rank: one that is said to train too
``garbage_at``     stage that sends garbage as well as its answer, of the kind
                   ``garbage``: text (default), binary, long (33 MiB without newline),
                   partial (half a line, then silence), id (a foreign id)
``eat_memory_at``  stage in which memory is allocated and touched until killed
``hold_mb``        megabytes that `run` takes and keeps; ``hold_shared`` "1": as shared
                   memory, which no limit of private memory refuses
``spin``           "1": a thread burns processor time for ever, idle or not
``load_script``    "1": `build` runs the script file
``barrier``        "late": `run` reads its clock before its work is done, and waits for
                   the work after that; "none": it never waits. The work is a thread
                   that takes ``step_ms`` a step of processor time
``pool_spin_ms``   after each `run` a thread burns processor time for so long
``jump_step``      at this step, or each of "1-3", the worker's clock jumps ahead by
                   ``jump_ms``, for good
``lie``            of `run`: "skip" does no step, "half" does half of them, "twice"
                   claims twice as many
``device``         what it says it computes on (default "cpu")
``transfer_us``    microseconds that a copy of its batch of 4 kB takes; "broken": asking
                   for it fails
``allocator_mb``   its allocator's peak; "broken": asking for it fails
=================  ==================================================================
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Mapping, NoReturn, Optional

from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    Peak,
    RunResult,
    Transfer,
)
from bakeoff_runner.script import load_script

_TARGET = 3.0
_LEARNING_RATE = 0.1
_OPTIONS = frozenset(
    "step_ms busy drift nan_step offset crash_at crash_step crash_how hang_at "
    "hang_step ignore_sigterm flood_mb flood_at grandchild garbage_at garbage "
    "eat_memory_at spin load_script barrier pool_spin_ms jump_step jump_ms "
    "work lie device transfer_us allocator_mb hold_mb hold_shared".split()
)


class FakeAdapter(Adapter):
    """See the module's table of options."""

    def __init__(self) -> None:
        self._options: Mapping[str, str] = {}
        self._weight = 0.0
        self._step = 0
        self._held: Any = None
        self._ranks: list[int] = []

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise AdapterError(f"unknown option '{unknown[0]}' of framework fake")
        self._options = options
        effective: dict[str, Any] = {"threads": threads}
        if self._on("ignore_sigterm"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "grandchild" in options:
            pid = effective["grandchild"] = _start_grandchild(options["grandchild"])
            self._ranks = [pid] if options["grandchild"] == "rank" else []
        if self._on("spin"):
            threading.Thread(target=_spin, daemon=True).start()
        self._trouble("import")
        device = options.get("device", "cpu")
        return ImportInfo({"fake": "1.0"}, device, effective)

    def processes(self) -> list[int]:
        return self._ranks

    def build(self, request: BuildRequest) -> dict[str, Any]:
        self._trouble("build")
        self._reset()
        if self._on("load_script"):
            load_script(request.script)
        return {"parameters": 1, "script": request.script.name, "dtype": request.dtype}

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        self._trouble("parity")
        import numpy as np

        from bakeoff_runner.tensors import read_safetensors

        offset = self._number("offset")
        tensors: dict[str, Array] = {
            "loss": np.array(0.5 * _TARGET**2 + offset),
            "output": np.array([0.0]),
            "grad/w": np.array([-_TARGET + offset]),
        }
        if request.grads_in is not None:
            given = read_safetensors(request.grads_in)["w"]
            tensors["update/w"] = -_LEARNING_RATE * given
        return tensors

    def losses(self, steps: int) -> LossesResult:
        self._trouble("losses")
        self._reset()
        start = time.monotonic_ns()
        losses = [self._train_step()]
        first = time.monotonic_ns()
        losses += [self._train_step() for _ in range(steps - 1)]
        end = time.monotonic_ns()
        return LossesResult(losses, first - start, end - start)

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        self._trouble("run")
        if "hold_mb" in self._options and self._held is None:
            self._held = _take(int(self._options["hold_mb"]), self._on("hold_shared"))
        if "barrier" in self._options:
            return self._run_without_barrier(steps, mark)
        lie = self._options.get("lie", "")
        done = {"skip": 0, "half": (steps + 1) // 2}.get(lie, steps)
        loss = 0.5 * _TARGET**2
        losses = []
        start = time.monotonic_ns()
        for step in range(steps):
            if step < done:
                loss = self._train_step()
            losses.append(loss)
            mark()
        end = time.monotonic_ns()
        if "pool_spin_ms" in self._options:
            _start_burning(self._number("pool_spin_ms") / 1e3)
        claimed = 2 * steps if lie == "twice" else None
        sums = {"w": self._weight}
        return RunResult(end - start, loss, claimed, losses=losses, sums=sums)

    def restore(self) -> None:
        self._weight = 0.0

    def nudge(self, changes: Mapping[str, Array]) -> None:
        self._weight += float(changes["w"].ravel()[0])

    def state(self) -> dict[str, Array]:
        self._trouble("state")
        import numpy as np

        return {"w": np.array(self._weight)}

    def request(self) -> Callable[[], None]:
        self._trouble("serve")

        def answer() -> None:
            self._train_step()

        return answer

    def allocator_peak(self) -> Peak:
        peak = self._options.get("allocator_mb")
        return super().allocator_peak() if peak is None else int(peak) << 20

    def transfer(self) -> Optional[Transfer]:
        told = self._options.get("transfer_us")
        return None if told is None else Transfer("batch", int(told) * 1000, 4096)

    def close(self) -> None:
        self._trouble("close")

    def _run_without_barrier(self, steps: int, mark: Callable[[], None]) -> RunResult:
        start = time.monotonic_ns()
        for _ in range(steps):
            mark()
        work = _start_burning(steps * self._number("step_ms") / 1e3)
        end = time.monotonic_ns()
        if self._options["barrier"] == "late":
            work.join()
        return RunResult(end - start, 1.0)

    def _reset(self) -> None:
        self._weight, self._step = 0.0, 0

    def _train_step(self) -> float:
        self._step += 1
        if self._options.get("crash_step") == str(self._step):
            self._crash()
        if self._options.get("hang_step") == str(self._step):
            _hang()
        first, _, last = self._options.get("jump_step", "0").partition("-")
        if int(first) <= self._step <= int(last or first):
            _jump(round(self._number("jump_ms") * 1e6))
        self._take_time()
        error = self._weight - _TARGET
        self._weight -= _LEARNING_RATE * error
        nan_step = int(self._options.get("nan_step", "0"))
        if 0 < nan_step <= self._step:
            return float("nan")
        return 0.5 * error * error + self._number("offset")

    def _take_time(self) -> None:
        for _ in range(int(self._options.get("work", "0"))):
            _unit_of_work()
        growth: float = (1.0 + self._number("drift")) ** (self._step - 1)
        seconds = self._number("step_ms") / 1e3 * growth
        if seconds <= 0.0:
            return
        if self._on("busy"):
            end = time.monotonic_ns() + round(seconds * 1e9)
            while time.monotonic_ns() < end:
                pass
        else:
            time.sleep(seconds)

    def _trouble(self, stage: str) -> None:
        options = self._options
        if options.get("flood_at", "import") == stage and "flood_mb" in options:
            _flood(int(options["flood_mb"]))
        if options.get("garbage_at") == stage:
            _send_garbage(options.get("garbage", "text"))
        if options.get("eat_memory_at") == stage:
            _eat_memory()
        if options.get("hang_at") == stage:
            _hang()
        if options.get("crash_at") == stage:
            self._crash()

    def _crash(self) -> NoReturn:
        how = self._options.get("crash_how", "raise")
        print(f"fake: crashing by {how}", file=sys.stderr, flush=True)
        if how == "exit":
            os._exit(1)
        if how == "silent":
            os._exit(0)
        if how == "abort":
            os.abort()
        if how == "segv":
            ctypes.string_at(0)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("fake: asked to crash")

    def _on(self, option: str) -> bool:
        return self._options.get(option) == "1"

    def _number(self, option: str) -> float:
        return float(self._options.get(option, "0"))


def make() -> Adapter:
    return FakeAdapter()


_BLOCK = bytes(1 << 18)


def _unit_of_work() -> None:
    sum(range(2000))
    bytearray(_BLOCK)


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


def _start_burning(seconds: float) -> threading.Thread:
    """A thread that uses a processor for so long, and lets others run as well."""

    def burn() -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    thread = threading.Thread(target=burn, daemon=True)
    thread.start()
    return thread


def _jump(nanoseconds: int) -> None:
    """From now on this process's monotonic clock is ahead of everybody else's."""
    original = time.monotonic_ns
    time.monotonic_ns = lambda: original() + nanoseconds


def _spin() -> NoReturn:
    while True:
        pass


def _flood(megabytes: int) -> None:
    chunk = (b"fake floods its output, sixty-four bytes in each of its lines.\n" * 17)[
        :1024
    ]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for _ in range(megabytes * 1024):
        for descriptor in (1, 2):
            left = memoryview(chunk)
            while left:
                left = left[os.write(descriptor, left) :]


def _take(megabytes: int, shared: bool) -> Any:
    size = max(1, megabytes << 20)
    block: Any = mmap.mmap(-1, size) if shared else bytearray(size)
    pages = (size + 4095) // 4096
    block[::4096] = b"x" * pages
    return block


def _eat_memory() -> NoReturn:
    hoard = []
    while True:
        block = bytearray(16 << 20)
        block[::4096] = b"x" * len(block[::4096])
        hoard.append(block)
        time.sleep(0.001)


def _send_garbage(kind: str) -> None:
    garbage = {
        "text": b"Segmentation fault? No, just some text.\n",
        "binary": bytes(range(256)) + b"\n",
        "long": b"x" * (33 << 20),
        "partial": b'{"id": 1, "ok": tr',
        "id": b'{"id": 987654, "ok": true}\n',
    }[kind]
    left = memoryview(garbage)
    while left:
        left = left[os.write(4, left) :]
    if kind == "partial":
        _hang()


def _start_grandchild(kind: str) -> int:
    """Starts a process that outlives its parent if nobody cares; returns its pid."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)"]
    if kind == "orphan":
        starter = (
            "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], "
            "start_new_session=True, stdout=subprocess.DEVNULL).pid)"
        )
        output = subprocess.check_output([sys.executable, "-c", starter, *sleeper])
        return int(output)
    if kind not in ("plain", "setsid", "rank"):
        raise AdapterError(f"grandchild '{kind}' is not plain, setsid, orphan or rank")
    return subprocess.Popen(sleeper, start_new_session=kind == "setsid").pid
