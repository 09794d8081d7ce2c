"""The observed process: its channel to the supervisor, and its reports.

It reports at a boundary of a step and waits there for the next request. A script may
end, fork, run in a notebook or never reach a step: each must end in a report or an exit
that the supervisor understands, as silence would be waited for. Standard output and
input stay the script's own; the channel is on descriptors of its own.
"""

from __future__ import annotations

import atexit
import builtins
import fcntl
import gc
import importlib
import json
import os
import resource
import sys
import time
import traceback
from threading import get_ident, main_thread
from types import ModuleType, TracebackType
from typing import Any, Callable, Optional

from bakeoff_observe import general_switches
from bakeoff_observe.calls import Calls
from bakeoff_observe.conversions import Given
from bakeoff_observe.functions import own_modules
from bakeoff_observe.imports import AfterImport
from bakeoff_observe.observer import Hooks, Observer
from bakeoff_observe.profiles import Limit, Profile, Times, told
from bakeoff_observe.rounds import Constant, Loop, Rounds
from bakeoff_observe.stacks import HookCalls, Lines
from bakeoff_runner.channel import strict

# A profile is dropped after these seconds and the time of these steps.
_PROFILED_S = 3.0
_PROFILED_STEPS = 6

FRAMEWORKS = ("torch", "keras", "tf_keras", "tensorflow", "jax")


class Process:
    """Reports at a boundary, then waits for the next request."""

    def __init__(self, observer: Observer) -> None:
        # Away from the descriptors that scripts close and replace.
        self._requests = _moved(3)
        self._answers = _moved(4)
        self._in = os.fdopen(self._requests, "rb", closefd=False)
        self.observer = observer
        self.hooks: list[Hooks] = []
        self.imports: dict[str, list[int]] = {}
        self.id = 0
        self.wants_facts = True
        self.switches: dict[str, Any] = {}
        self.thrown: list[str] = []
        self.error: dict[str, Any] = {}
        self.calls = Calls(self)
        self.lines: Optional[Lines] = None
        self.hook_calls: Optional[HookCalls] = None
        self.compiles = 0  # until the last report
        self.counter: Optional[Rounds] = None
        self.constants: list[Constant] = []  # seen then
        self.rounds: dict[Loop, int] = {}  # of each loop in the step that was counted
        self.given: Optional[Given] = None
        self.profiles: list[Profile] = []  # that run
        self.limit: Optional[Limit] = None
        self.step_s = 0.0  # the mean of the last report
        self.started = time.monotonic_ns()

    def threw(self, switch: str) -> None:
        """The switch changed something."""
        if switch not in self.thrown:
            self.thrown.append(switch)

    def hello(self) -> None:
        version = ".".join(map(str, sys.version_info[:3]))
        self._send({"event": "hello", "pid": os.getpid(), "python": version})
        request = self._receive()
        self.switches = dict(request.get("switches", {}))
        self.observer.known = request.get("kind", "")
        if request.get("whole"):
            self.observer.count_no_steps()
        if request.get("notebook"):
            builtins.get_ipython = _Notebook  # type: ignore[attr-defined]
        self._go(request)

    def report(self) -> None:
        """Called by the observer where it has to stop."""
        for barrier in self.observer.barriers:
            barrier()
        try:
            self._answer(ended=False)
            request = self._receive()
        except OSError:  # the script closed every descriptor: nobody hears it
            self.observer.forget()
            return
        self.compiles += self.observer.compiles
        self.observer.begin()
        self._go(request)

    def _go(self, request: dict[str, Any]) -> None:
        self.id = request["id"]
        self.wants_facts = bool(request.get("facts", False))
        until = self.observer.begun + int(1e9 * request.get("seconds", 3600))
        self.observer.go(request.get("steps", 1 << 60), until)
        if request.get("watch") == "lines":
            self.lines = Lines(self.observer.thread, self._computes)
        elif request.get("watch") == "hooks":
            self.hook_calls = HookCalls(len(self.observer.marks))
            self.given = Given()
        elif request.get("watch") == "profile":
            self.profiles = [p for hooks in self.hooks if (p := self._profile(hooks))]
            if get_ident() == main_thread().ident:
                seconds = _PROFILED_S + _PROFILED_STEPS * self.step_s
                self.limit = Limit(self.profiles, seconds)
        elif request.get("watch") == "rounds":
            self.counter = Rounds()
            if not self.compiles:  # a graph of PyTorch that is made now would hold it
                self.given = Given()

    def _profile(self, hooks: Hooks) -> Optional[Profile]:
        try:
            return hooks.profile()
        except Exception as error:  # another version has another profiler
            self.observer.notes.append(f"{hooks.name} has no profile: {error!r}")
            return None

    def _profiled(self, profile: Profile) -> Times:
        try:
            return profile.stop()
        except Exception as error:  # what cannot be read is not told
            self.observer.notes.append(f"no profile can be read: {error!r}")
            return {}

    def _computes(self) -> bool:
        """Whether the training thread is in a compiled function, or compiles one."""
        if self.observer.inside:
            return True
        return any(getattr(hooks, "busy", False) for hooks in self.hooks)

    def _answer(self, ended: bool) -> None:
        seen = self.observer
        done = time.monotonic_ns()
        if len(seen.marks) > 1:
            first, *_, last = seen.marks
            self.step_s = 1e-9 * (last - first) / (len(seen.marks) - 1)
        watched = self._watched(ended)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._send(
            {
                "id": self.id,
                "ok": True,
                "ended": ended,
                "kind": seen.kind,
                "begun": seen.begun,
                "ns": done - seen.begun,
                "marks": seen.marks,
                "waits": seen.waits,
                "epochs": seen.epochs,
                "compiles": seen.compiles,
                "compile_ns": seen.compile_ns,
                "compile_steps": sorted(set(seen.compile_steps)),
                "started": self.started,
                "imports": self.imports,
                "collections": seen.collections,
                "cpu_ns": int(1e9 * (usage.ru_utime + usage.ru_stime)),
                "peak_rss_bytes": usage.ru_maxrss * 1024,
                "minor_faults": usage.ru_minflt,
                "facts": self._facts() if self.wants_facts else {},
                "environment": environment() if self.wants_facts else {},
                "losses": [_number(loss) for loss in seen.losses],
                "loss": _number(seen.loss),
                "thrown": self.thrown,
                "files": own_modules() if self.wants_facts or watched else {},
                "notes": seen.notes,
                **watched,
                **self.error,
            }
        )

    def _watched(self, ended: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        last = ended or self.hook_calls is not None  # no step counts any more
        if self.lines is not None:
            found = self.lines.stop(self.rounds, self.constants)
            self.lines = None
        steps = len(self.observer.marks)
        if self.hook_calls is not None:
            found["hooks"], self.hook_calls = self.hook_calls.stop(steps), None
        if self.counter is not None:
            self.rounds = self.counter.stop(steps)
            self.constants, self.counter = self.counter.constants(), None
        if self.profiles and (self.limit is None or self.limit.on):
            if self.limit is not None:
                self.limit.on = False
            found["ops"] = told([self._profiled(p) for p in self.profiles], steps)
        self.profiles, self.limit = [], None
        if self.given is not None:
            found["conversions"], self.given = self.given.stop(steps), None
        for hooks in self.hooks if last else []:
            try:
                seconds = hooks.input_seconds()
                found["input_s"] = max(seconds, found.get("input_s", 0.0))
            except Exception as error:  # what cannot be read is not told
                self.observer.notes.append(f"{hooks.name}: {error!r}")
        return found

    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        common = {**self.calls.facts(), **self.observer.memory()}
        common["tracing"] = general_switches.traced()
        steps = max(1, len(self.observer.marks))
        collecting = self.observer.spent.get("collections", 0)
        common["collections_s"] = 1e-9 * collecting / steps
        for hooks in self.hooks:
            try:
                facts = hooks.facts()
            except Exception as error:  # a fact that cannot be had is no fact
                self.observer.notes.append(f"{hooks.name}: {error!r}")
                continue
            if facts is not None:
                found[hooks.name] = {"version": hooks.version, **common, **facts}
                found[hooks.name]["lines"] = common["lines"] | facts.get("lines", {})
        return found

    def ended(self) -> None:
        """The script's own end."""
        if os.getpid() == self.observer.pid:
            self.observer.wait = lambda: None
            self.observer.stepless = (
                not self.observer.marks and not self.observer.before
            )
            try:
                self._answer(ended=True)
            except OSError:
                pass

    def failed(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: Optional[TracebackType],
    ) -> None:
        where = traceback.extract_tb(trace)
        self.error = {
            "error": "".join(traceback.format_exception_only(kind, error)).strip(),
            "where": f"{where[-1].filename}:{where[-1].lineno}" if where else "",
        }

    def forked(self) -> None:
        self.observer.forget()
        if self.counter is not None:
            self.counter.off()
        for fd in (self._requests, self._answers):
            try:
                os.close(fd)
            except OSError:
                pass

    def _receive(self) -> dict[str, Any]:
        line = self._in.readline()
        if not line:
            os._exit(0)  # nobody waits for this process any more
        request: dict[str, Any] = json.loads(line)
        return request

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(strict(message), allow_nan=False).encode() + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(self._answers, view) :]


class _Notebook:
    """What a notebook that was exported as a script asks of its notebook: nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


# Of what changes speed, or numbers.
PACKAGES: tuple[str, ...] = (
    "torch",
    "keras",
    "tf_keras",
    "tensorflow",
    "jax",
    "jaxlib",
    "optax",
    "flax",
)
PACKAGES += ("numpy", "torchvision", "lightning", "transformers")
VARIABLES: tuple[str, ...] = (
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "KMP_",
    "GOMP_",
    "TF_",
    "XLA_",
    "JAX_",
    "KERAS_",
)
VARIABLES += ("TORCH", "PYTORCH_", "CUDA_", "MALLOC_", "LD_PRELOAD", "PYTHONOPTIMIZE")


# As the script was started: frameworks set some of their own.
_GIVEN = {k: v for k, v in sorted(os.environ.items()) if k.startswith(VARIABLES)}


def environment() -> dict[str, str]:
    """Versions of what is imported, and environment variables of interest."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found | _GIVEN


def _moved(fd: int) -> int:
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 400)
    os.close(fd)
    return high


def _number(value: Any) -> Optional[float]:
    try:
        return None if value is None else float(value)
    except Exception:
        return None


def _installer(
    process: Process, name: str, runners: str
) -> Callable[[ModuleType, int, int], None]:
    def install(module: ModuleType, begun: int, ended: int) -> None:
        process.imports[name] = [begun, ended]
        sys.path.insert(0, runners)
        try:
            hooks = importlib.import_module(f"bakeoff_observe.{name}_hooks")
        except ImportError as error:
            process.observer.notes.append(f"{name}: {error}")
            return
        finally:
            if runners in sys.path:
                sys.path.remove(runners)
        try:
            process.hooks.append(hooks.install(module, process))
        except (AttributeError, ImportError, TypeError) as error:
            version = getattr(module, "__version__", "?")
            process.observer.notes.append(
                f"{name} {version} has not the place of a hook: {error}"
            )

    return install


def start(runners: str) -> Process:
    """From here on the process is observed."""
    observer = Observer()
    process = Process(observer)
    observer.wait = process.report
    gc.callbacks.append(observer.collected)
    os.register_at_fork(after_in_child=process.forked)
    AfterImport({name: _installer(process, name, runners) for name in FRAMEWORKS})
    process.hello()
    general_switches.throw(process)
    process.calls.watch()
    atexit.register(process.ended)
    before = sys.excepthook

    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        process.failed(kind, error, trace)
        before(kind, error, trace)

    sys.excepthook = excepthook
    return process
