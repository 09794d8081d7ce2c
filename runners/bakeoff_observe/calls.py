"""Calls in the loop that no step needs: saving, logging, sleeping, predicting.

Counted from the first step on, with the line of the user's file that made them. The
switches `no_save`, `no_log` and `no_sleep` leave them out; with `no_copy` a deep copy
is the first one of its line again.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from bakeoff_observe.functions import is_own, own_frame, own_line
from bakeoff_observe.imports import AfterImport
from bakeoff_observe.observer import now

if TYPE_CHECKING:
    from bakeoff_observe.process import Process


class Call(NamedTuple):
    """A function or method that is watched."""

    module: str  # after whose import it can be found
    path: str  # from there
    word: str = ""  # by which it is told; else module and last name
    switch: str = ""  # that leaves it out
    own: bool = True  # only calls by the user's own files count
    instead: Any = None  # of what it returns
    apart: str = ""  # packages whose own calls do not count


_WRITER = "scalar scalars histogram image images figure text audio video embedding"
_KERAS = "save save_weights"
_PREDICTS = "predict evaluate predict_on_batch test_on_batch"

_WARM = 2  # calls of `predict` and the like, which trace their functions
_CLOCK = "a clock"  # that the script reads

CALLS = [
    *(Call("time", name, _CLOCK) for name in ("time", "perf_counter", "monotonic")),
    Call("time", "sleep", switch="no_sleep"),
    Call("copy", "deepcopy", switch="no_copy"),
    Call("pickle", "dump", switch="no_save"),
    Call("json", "dump", switch="no_save"),
    Call("torch", "save", switch="no_save", own=False, apart="torch."),
    *(Call("numpy", n, switch="no_save") for n in ("save", "savez", "savetxt")),
    Call("numpy", "savez_compressed", switch="no_save"),
    Call("joblib", "dump", switch="no_save"),
    *(
        Call("tensorflow", f"train.{name}.save", f"tf.train.{name}.save", "no_save")
        for name in ("CheckpointManager", "Checkpoint")
    ),
    Call("flax.training.checkpoints", "save_checkpoint", switch="no_save"),
    Call("logging", "Logger.callHandlers", "logging", "no_log", own=False),
    *(
        Call(module, f"SummaryWriter.{name}", f"SummaryWriter.{name}", "no_log", False)
        for module in ("torch.utils.tensorboard.writer", "tensorboardX.writer")
        for name in [*(f"add_{word}" for word in _WRITER.split()), "flush"]
    ),
    *(
        Call("tensorflow", f"summary.{name}", f"tf.summary.{name}", "no_log", False)
        for name in ("scalar", "histogram", "image", "text", "write", "flush")
    ),
    Call("wandb", "log", switch="no_log"),
    Call("mlflow", "log_metric", switch="no_log"),
    Call("mlflow", "log_metrics", switch="no_log"),
    Call("tqdm.std", "tqdm.refresh", "tqdm.refresh", "no_log", False, True),
    Call("matplotlib.figure", "Figure.savefig", "savefig", "no_save", False),
    *(
        Call(module, f"Model.{name}", f"model.{name}", "no_save", False)
        for module in ("keras", "tf_keras")
        for name in _KERAS.split()
    ),
    *(
        Call(module, f"Model.{name}", f"model.{name}")
        for module in ("keras", "tf_keras")
        for name in ("compile", *_PREDICTS.split())
    ),
]


class Calls:
    def __init__(self, process: Process) -> None:
        self.process, self.observer = process, process.observer
        self.words: set[str] = set()
        self.lines: dict[str, int] = {}
        self.rows: dict[str, int] = {}  # of what a model predicted last
        self.batch = 0  # rows of a batch that `predict` was asked for last
        self.before: dict[str, Any] = {}  # calls, ns and line before a step
        self.saved: set[tuple[str, Any]] = set()
        self.copies: dict[Any, Any] = {}  # the first one of each line
        self.busy = False  # in one of them: what it calls itself is part of it

    def watch(self) -> None:
        """Now what is imported, the rest after its import."""
        later: dict[str, list[Call]] = {}
        for call in CALLS:
            later.setdefault(call.module, []).append(call)
        self.watch_open()
        for module in ("time", "copy", "pickle", "json", "logging"):
            __import__(module)
            self.place(sys.modules[module], later.pop(module))
        AfterImport({name: self.imported(calls) for name, calls in later.items()})

    def imported(self, calls: list[Call]) -> Callable[[ModuleType, int, int], None]:
        return lambda module, begun, ended: self.place(module, calls)

    def place(self, module: ModuleType, calls: list[Call]) -> None:
        for call in calls:
            *path, name = call.path.split(".")
            owner: Any = module
            for word in path:
                owner = getattr(owner, word, None)
            if path and isinstance(owner, type):  # where it is defined
                owner = next((c for c in owner.__mro__ if name in vars(c)), None)
            inner = getattr(owner, name, None)
            if callable(inner):
                setattr(owner, name, self.watched(call, inner))

    def watched(self, call: Call, inner: Callable[..., Any]) -> Callable[..., Any]:
        word = call.word or f"{call.module}.{call.path}"
        switches, main = self.process.switches, self.observer.thread
        skips = call.switch if call.switch in switches else ""
        observer = self.observer
        predicts = call.path.rsplit(".", 1)[-1] in _PREDICTS.split()

        @functools.wraps(inner)
        def called(*args: Any, **kwargs: Any) -> Any:
            early = not observer.kind
            if self.busy or get_ident() != main or (early and word == _CLOCK):
                return inner(*args, **kwargs)
            if call.own and not is_own(sys._getframe(1).f_code.co_filename):
                return inner(*args, **kwargs)
            if call.apart and str(
                sys._getframe(1).f_globals.get("__name__", "")
            ).startswith(call.apart):
                return inner(*args, **kwargs)
            if word == "logging" and not _is_told(args):
                return inner(*args, **kwargs)
            if early:
                return self.early(word, inner, args, kwargs)
            self.count(word)
            if word == _CLOCK and any(pending() for pending in observer.pending):
                observer.count("early_clocks")
            if predicts:
                self.rows[word] = _rows(args, kwargs)
            if word == "model.predict":
                self.batch = _batch(args, kwargs)
            if skips and self.inert(skips, word, args):
                self.process.threw(skips)
                if skips == "no_copy":
                    return self.copies[self.place_of(sys._getframe(1))]
                return call.instead
            self.busy, since = True, now()
            compiles = observer.compiles, observer.compile_ns
            try:
                made = inner(*args, **kwargs)
            finally:
                self.busy = False
                took = now() - since
                observer.spent[word] = observer.spent.get(word, 0) + took
                # What the first calls trace is part of what they take.
                if predicts and observer.counts.get(word, 0) <= _WARM:
                    observer.compiles, observer.compile_ns = compiles
            return self.copied(made) if skips == "no_copy" else made

        return called

    def early(self, word: str, inner: Any, args: Any, kwargs: Any) -> Any:
        """A call before the first step, which counts where no step comes."""
        self.busy, since = True, now()
        try:
            return inner(*args, **kwargs)
        finally:
            self.busy = False
            line = own_line(sys._getframe(2))
            calls, ns, line = self.before.get(word, (0, 0, line))
            self.before[word] = (calls + 1, ns + now() - since, line)

    def take_early(self) -> None:
        observer = self.observer
        for word, (calls, ns, line) in self.before.items():
            self.words.add(word)
            observer.counts[word] = observer.counts.get(word, 0) + calls
            observer.spent[word] = observer.spent.get(word, 0) + ns
            self.lines.setdefault(word, line)
        self.before = {}

    def copied(self, made: Any) -> Any:
        """Kept for the next call of this line."""
        self.copies[self.place_of(sys._getframe(2))] = made
        return made

    def place_of(self, frame: Optional[FrameType]) -> Any:
        frame = own_frame(frame)
        return frame and (frame.f_code, frame.f_lineno)

    def count(self, word: str) -> None:
        self.words.add(word)
        self.observer.count(word)
        if word not in self.lines:
            line = own_line(sys._getframe(2))
            if line:
                self.lines[word] = line

    def inert(self, switch: str, word: str, args: tuple[Any, ...]) -> bool:
        """Whether this call may be left out.

        What is saved in memory is needed there; the first file of each line is
        written, so that it can be read again.
        """
        if switch == "no_copy":
            return self.place_of(sys._getframe(2)) in self.copies
        if switch != "no_save":
            return True
        if any(hasattr(x, "getvalue") for x in args):
            return False
        place = (word, self.place_of(sys._getframe(2)))
        if place in self.saved:
            return True
        self.saved.add(place)
        return False

    def watch_open(self) -> None:
        """Files that the user's own code opens to write."""
        import builtins

        inner, observer, main = builtins.open, self.observer, self.observer.thread

        @functools.wraps(inner)
        def opened(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            if (
                mode != "r"
                and mode != "rb"
                and observer.kind
                and get_ident() == main
                and is_own(sys._getframe(1).f_code.co_filename)
            ):
                self.count("open")
            return inner(file, mode, *args, **kwargs)

        builtins.open = opened

    def facts(self) -> dict[str, Any]:
        observer = self.observer
        if observer.stepless:
            self.take_early()
        found = {word: observer.per_step(word) for word in sorted(self.words)}
        found = {word: rate for word, rate in found.items() if rate > 0}
        told: dict[str, Any] = {"calls_per_step": found}
        steps = max(1, len(observer.marks))
        told["call_seconds_per_step"] = {
            word: 1e-9 * observer.spent[word] / steps
            for word in found
            if word in observer.spent
        }
        told["lines"] = {w: self.lines[w] for w in found if w in self.lines}
        if _CLOCK in found:  # that is read is no cost
            reads = found.pop(_CLOCK)
            told["early_clocks"] = observer.per_step("early_clocks") / reads
        rows = {word: n for word, n in self.rows.items() if word in found and n}
        if rows:
            told["rows"] = rows
            told["predict_batch"] = self.batch
        return told


def _is_told(args: tuple[Any, ...]) -> bool:
    """Of a logger and its record: whether the user's own code logs it."""
    path = getattr(args[1], "pathname", "") if len(args) > 1 else ""
    return bool(path) and is_own(str(path))


def _rows(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Of what a model is called with; 0 where it is not known."""
    x: Optional[Any] = args[1] if len(args) > 1 else kwargs.get("x")
    shape = getattr(x, "shape", None)
    try:
        return int(shape[0]) if shape is not None else 0
    except (IndexError, TypeError):
        return 0


def _batch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Rows that `predict` takes at a time; 32 unless it is told otherwise."""
    size = args[2] if len(args) > 2 else kwargs.get("batch_size")
    return size if isinstance(size, int) and size > 0 else 32
