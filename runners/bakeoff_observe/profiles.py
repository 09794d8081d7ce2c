"""Of which ops a step consists, by the framework's own profiler, in a sample of steps.

A look at the stack ends where Python does: of `loss.backward()` or a compiled step it
says nothing more. Profilers name the ops within, in all threads, and cost so much that
they run in two steps alone, behind those that are timed. XLA and TensorFlow write
intervals that lie within one another; an op has what no op within it has.
"""

from __future__ import annotations

import _thread
import ctypes
import glob
import importlib
import os
import re
import tempfile
import time
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Optional

__all__ = [
    "JaxProfile",
    "Limit",
    "Profile",
    "TensorFlowProfile",
    "TorchProfile",
    "self_times",
]

Times = dict[str, tuple[float, int]]  # by the name of an op: seconds, and calls
Event = tuple[float, float, str]  # begin and end in ns, and a name

_MOST = 24  # ops that are told
_MOST_EVENTS = 400_000  # of a profile that is read
_EAGER = "EagerLocalExecute: "
_NUMBER = re.compile(r"[._]\d+(\.clone|\.remat\d*)?$")  # "sort.12"
_XLA_INSIDE = re.compile(r"^end: |::|^[$<]|^Wait |^Parse|^Handle|^PjitFunction")


class Profile:
    """Runs from its making on; `stop` says what it saw."""

    def stop(self) -> Times:
        raise NotImplementedError

    def drop(self) -> None:
        """Ends it unread."""
        raise NotImplementedError


_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_sleep = time.sleep  # as it was before anybody watched it


class Limit:
    """Drops profiles after some seconds unless they were stopped.

    A script may do something else after the step that should have been profiled, and
    for long: its profile would fill the memory, and be read for minutes. Profilers end
    in the thread that began them, the main one, which is made to do so between two of
    its instructions.
    """

    def __init__(self, profiles: list[Profile], seconds: float) -> None:
        self.profiles, self.seconds = profiles, seconds
        self.on = True
        self.call = _CALL(self._drop)  # lives as long as it may be called
        _thread.start_new_thread(self._wait, ())

    def _wait(self) -> None:
        _sleep(self.seconds)
        if self.on:
            ctypes.pythonapi.Py_AddPendingCall(self.call, None)

    def _drop(self, _: Any) -> int:
        if self.on:
            self.on = False
            for profile in self.profiles:
                profile.drop()
        return 0


def joined(parts: Iterable[Times]) -> Times:
    """The sums of seconds and calls."""
    found: Times = {}
    for part in parts:
        for name, (seconds, calls) in part.items():
            before = found.get(name, (0.0, 0))
            found[name] = before[0] + seconds, before[1] + calls
    return found


def told(parts: list[Times], steps: int) -> list[dict[str, Any]]:
    """The ops of one step that take most, by the name; seconds of all threads."""
    all_ops = joined(parts)
    n = max(1, steps)
    most = sorted(all_ops.items(), key=lambda one: -one[1][0])
    rest = sum(seconds for _, (seconds, _) in most[_MOST:])
    found = [
        {"name": name, "seconds": seconds / n, "calls": calls / n}
        for name, (seconds, calls) in most[:_MOST]
    ]
    if rest > 0:
        calls = sum(calls for _, (_, calls) in most[_MOST:])
        found.append({"name": "", "seconds": rest / n, "calls": calls / n})
    return found


def self_times(events: Iterable[Event]) -> Times:
    """The events of one thread, each without the events inside it."""
    found: dict[str, list[float]] = {}
    open_: list[tuple[float, str]] = []  # ends and names, the outermost first
    for begin, end, name in sorted(events, key=lambda e: (e[0], -e[1])):
        while open_ and open_[-1][0] <= begin:
            open_.pop()
        if open_:
            found[open_[-1][1]][0] -= end - begin
        one = found.setdefault(name, [0.0, 0])
        one[0] += end - begin
        one[1] += 1
        open_.append((end, name))
    return {name: (1e-9 * ns, int(calls)) for name, (ns, calls) in found.items()}


class TorchProfile(Profile):
    def __init__(self, torch: ModuleType) -> None:
        profiler = importlib.import_module("torch.profiler")
        kinds = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            kinds.append(profiler.ProfilerActivity.CUDA)
        self.profile = profiler.profile(activities=kinds)
        self.disable = torch.autograd._disable_profiler
        self.profile.start()

    def drop(self) -> None:
        self.disable()

    def stop(self) -> Times:
        self.profile.stop()
        found: Times = {}
        for one in self.profile.key_averages():
            if "#" in one.key or one.key.startswith(("ProfilerStep", "cuda")):
                continue  # Python's own time within an optimizer or a loader
            device = getattr(one, "self_device_time_total", 0)
            microseconds = device or one.self_cpu_time_total
            found[one.key] = 1e-6 * microseconds, int(one.count)
        return found


class _Traced(Profile):
    """Of a profiler that writes a file of planes, lines and events."""

    def __init__(self, start: Callable[[str], None], stop: Callable[[], None]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="bakeoff_profile_")
        self.end = stop
        start(self.folder.name)

    def drop(self) -> None:
        self.end()
        self.folder.cleanup()

    def stop(self) -> Times:
        self.end()
        with self.folder as folder:
            files = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
            lines = [events for file in files for events in self.lines(file)]
        return joined(self_times(self.ops(events)) for events in lines)

    def ops(self, events: list[Event]) -> Iterator[Event]:
        for begin, end, name in events:
            op = self.op(name)
            if op is not None:
                yield begin, end, op

    def lines(self, file: str) -> Iterator[list[Event]]:
        raise NotImplementedError

    def op(self, name: str) -> Optional[str]:
        """An op of XLA, without its number: "sort.12" is a sort."""
        return None if _XLA_INSIDE.search(name) else _NUMBER.sub("", name)


class JaxProfile(_Traced):
    def __init__(self, jax: ModuleType) -> None:
        self.profiler = jax.profiler
        options = self.profiler.ProfileOptions()
        options.python_tracer_level = 0

        def start(folder: str) -> None:
            self.profiler.start_trace(folder, profiler_options=options)

        super().__init__(start, self.profiler.stop_trace)

    def lines(self, file: str) -> Iterator[list[Event]]:
        left = _MOST_EVENTS
        for plane in self.profiler.ProfileData.from_file(file).planes:
            for line in plane.lines:
                # Where ops run: threads of XLA on a processor, streams of a device.
                if not ("XLA" in line.name or plane.name.startswith("/device:")):
                    continue
                events: list[Event] = []
                for e in line.events:
                    left -= 1
                    if left < 0:
                        return
                    if e.duration_ns > 0:
                        end = e.start_ns + e.duration_ns
                        events.append((e.start_ns, end, e.name))
                yield events


class TensorFlowProfile(_Traced):
    def __init__(self, tf: ModuleType) -> None:
        self.planes = importlib.import_module(
            "tensorflow.tsl.profiler.protobuf.xplane_pb2"
        )
        profiler = tf.profiler.experimental
        options = profiler.ProfilerOptions(python_tracer_level=0)
        super().__init__(lambda folder: profiler.start(folder, options), profiler.stop)

    def lines(self, file: str) -> Iterator[list[Event]]:
        space = self.planes.XSpace()
        with open(file, "rb") as data:
            space.ParseFromString(data.read())
        left = _MOST_EVENTS
        for plane in space.planes:
            for line in plane.lines:
                left -= len(line.events)
                if left < 0:
                    return
                yield [
                    (e.offset_ps / 1e3, (e.offset_ps + e.duration_ps) / 1e3, name)
                    for e in line.events
                    if e.duration_ps > 0
                    for name in [plane.event_metadata[e.metadata_id].name]
                ]

    def op(self, name: str) -> Optional[str]:
        """The type of an op, "model/dense/MatMul:MatMul"; or an op of XLA's."""
        if name.startswith(_EAGER):
            op = name.removeprefix(_EAGER)
            return None if op.startswith("__") else op  # a function has ops of its own
        if ":" in name and "::" not in name and " " not in name:
            return name.rpartition(":")[2]
        known = re.match(r"[a-z][a-z0-9_.-]*(fusion|dot|convolution|sort)", name)
        return super().op(name) if known else None
