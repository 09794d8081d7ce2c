"""What a framework adapter has to offer, and how the worker finds it.

An adapter is a module ``bakeoff_runner/adapters/<name>_adapter.py`` with one
function ``make() -> Adapter``. It is the only place of the package in which the
framework may be imported, and that only inside `Adapter.import_framework`, whose
duration is measured. It knows the idiom of the scripts written for its framework
and maps it to the protocol (docs/runner_protocol.md).

The worker calls the methods in this order, each as often as it is asked to::

    import_framework -> build -> parity | losses | train -> build -> ... -> close

Any exception an adapter raises becomes an ``ok: false`` answer with the stage, the
exception and its traceback; the worker lives on. `AdapterError` is for expected
failures whose message says everything (no traceback needed to understand it).

Time is `time.monotonic_ns()` (CLOCK_MONOTONIC) throughout.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from bakeoff_runner.arrays import Array
from bakeoff_runner.transfers import Transfer

# The most bytes that an allocator held, or why they were not counted. Frameworks count
# on their accelerators; on the CPU they take memory from the system's malloc, whose
# peak is seen from outside (resident memory).
Peak = Union[int, str]

__all__ = [
    "Adapter",
    "AdapterError",
    "Array",
    "BatchWait",
    "BuildRequest",
    "ImportInfo",
    "LossesResult",
    "ParityRequest",
    "Peak",
    "RunCommand",
    "RunResult",
    "TrainCommands",
    "Transfer",
    "load_adapter",
]


class AdapterError(Exception):
    """An expected failure, in words for the user."""


@dataclass(frozen=True)
class ImportInfo:
    """What was imported, and what it really does (not what it was told to do)."""

    versions: Mapping[str, str]  # {"torch": "2.13.0+cpu", "numpy": "2.3.5"}
    device: str = "cpu"  # "cpu", "cuda:0", ...
    effective: Mapping[str, Any] = field(default_factory=dict)  # {"threads": 2, ...}


@dataclass(frozen=True)
class BuildRequest:
    """One script to load, and what to load into it."""

    script: Path
    weights: Optional[Path]  # safetensors, canonical names and layouts; None = own init
    data: Optional[Path]  # safetensors, one tensor per workload input, axis 0 = rows
    layout: Optional[Path]  # JSON, see layout.py; None = every tensor as it is
    dropout: bool = True  # False: every dropout rate is forced to 0
    train: bool = True  # False: no optimizer, only parity with grads_in = None
    # True: the scenario "predict". A step is one forward pass in inference mode.
    predict: bool = False
    # True, with `predict`: the scenario "generate". A step answers a batch of prompts.
    generate: bool = False
    dtype: str = "float32"  # or "float64": parameters, activations, optimizer state
    batch: Optional[int] = None  # in place of the script's BATCH_SIZE
    # The whole request as it came: an adapter may understand further keys.
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ParityRequest:
    """One proof on the rows [first, first + count) of the data.

    From the initial weights, in train mode, the answer has under canonical names and
    in canonical layouts:

    - ``loss`` (scalar) and ``output`` (what the loss is computed from),
    - ``grad/<param>`` for every parameter,
    - ``update/<param>``: the parameters after ONE optimizer update, from fresh
      optimizer state and the initial weights, from exactly the gradients in
      `grads_in`; absent when that is None,
    - ``buffer/<name>``: buffers such as BatchNorm running statistics after that one
      training step,
    - where `activations` asks for them and they can be had, ``activation/<layer>``: the
      output of each layer that holds parameters. They say where a difference begins,
      nothing else: layers used twice or fused with others show what they show.

    Afterwards weights, buffers and optimizer are as they were before; random numbers
    go on, so that the next proof of a build with dropout draws other masks.

    After a build with `predict` the answer has ``output`` and, if one likes,
    ``activation/<layer>``, and nothing else: of the very step that `run` repeats, in
    inference mode. With `generate`: what generation.py says.
    """

    first: int
    count: int
    grads_in: Optional[Path]  # safetensors of canonical gradients
    activations: bool = False


@dataclass(frozen=True)
class LossesResult:
    """The losses of consecutive training steps from the initial state."""

    losses: list[float]  # of the batch of each step, before its update
    first_ns: int  # the first step, compilation included, up to the barrier
    ns: int  # all steps, the first included, up to the barrier


@dataclass
class BatchWait:
    """Time waited for batches; the first one of each epoch apart."""

    ns: int = 0
    batches: int = 0
    first_ns: int = 0
    firsts: int = 0


@dataclass(frozen=True)
class RunResult:
    """One burst: `ns` from before the first step to after the completion barrier."""

    ns: int
    loss: Optional[float] = None  # of the last step if it is at hand at no cost
    steps: Optional[int] = None  # really run, where that is not what was asked for
    wait: Optional[BatchWait] = None  # for batches, where it can be told from the rest
    # What proves the work, told with the answer: the loss of each step before its
    # update, or the mean of all where the framework's loop shows no single one; and
    # the sum of every trained parameter after the last update, by canonical name.
    losses: Optional[Sequence[float]] = None
    mean_loss: Optional[float] = None
    sums: Optional[Mapping[str, float]] = None
    # Of a burst of predictions: gives size, last element and sum of squares of the
    # output of each step, or of as many of the last steps as were kept. Called where
    # they are asked for, after the answer.
    outputs: Optional[Callable[[], Sequence[Sequence[Any]]]] = None


@dataclass(frozen=True)
class RunCommand:
    """The supervisor wants `steps` training steps, then the barrier, then an answer.

    `nudge`, which this process has added already, is added again after every
    `nudge_every` steps by `TrainCommands.mark`.
    """

    steps: int
    nudge: Optional[Path] = None
    nudge_every: int = 0


class TrainCommands(ABC):
    """What a training loop asks for its next burst; the worker implements it.

    `next` blocks until the supervisor sends something. It serves what leaves the loop
    where it stands (``memory``, ``restore``) itself, through the adapter's methods of
    these names, and so the nudge that a ``run`` may begin with. It returns a
    `RunCommand` for a ``run``, and None when the loop must be left: for a request of
    another kind, which the worker then serves, or because the supervisor is gone.
    Every command is to be answered once, before the next one is asked for. `mark`
    stamps the end of a step into the ring: it costs well under a microsecond and never
    fails, so it is called after every step (pipelined: no barrier before it).
    """

    @abstractmethod
    def next(self) -> Optional[RunCommand]: ...

    @abstractmethod
    def answer(self, result: RunResult) -> None: ...

    @property
    @abstractmethod
    def mark(self) -> Callable[[], None]: ...


class Adapter(ABC):
    """One framework, seen by the worker. One instance per worker process."""

    @abstractmethod
    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        """Imports the framework and applies the settings.

        `options` is the contender's settings map as written in the recipe, e.g.
        ``{"backend": "jax", "compile": "default"}``; an option that is not known here
        is an `AdapterError`. `threads` >= 1. Called once.
        """

    @abstractmethod
    def build(self, request: BuildRequest) -> dict[str, Any]:
        """Imports the script and builds model, optimizer and step; loads weights, data.

        Everything of a former build is dropped first. Returns effective settings,
        e.g. ``{"batch": 256, "compile": "default", "parameters": 563018}``.
        """

    @abstractmethod
    def parity(self, request: ParityRequest) -> dict[str, Array]:
        """Computes what `ParityRequest` describes; the worker writes the file."""

    @abstractmethod
    def losses(self, steps: int) -> LossesResult:
        """Resets to the initial state and runs the real train step `steps` times.

        The same compiled step that `run` uses. Afterwards the state is the one after
        these steps, and `run` goes on from there.
        """

    @abstractmethod
    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        """Runs `steps` training steps, calls `mark` after each, ends with the barrier.

        After a build with `predict`: as many forward passes.

        Goes on where the last run stopped; data wraps around, the last partial batch
        is dropped. Nothing but the loop may happen between start and end: no host
        copy, no printing, no synchronisation within the burst.
        An adapter that overrides `train` need not implement this one usefully.
        """

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        """The hashes of the first `count` batches that training would read.

        In the initial state, by the very iterator that `losses` and `run` read, with
        `pipeline.digest`. Afterwards the first row of the data is next. None: the
        adapter cannot tell.
        """
        return None

    def allocator_peak(self) -> Peak:
        """Of the framework's own allocator.

        Called between bursts, after `import_framework`.
        """
        return "this framework keeps no count"

    def compilations(self) -> int:
        """How often this process has compiled or traced a function, where that can be
        told: the difference of two calls is what came between them."""
        return 0

    def transfer(self) -> Optional[Transfer]:
        """How long the copy of a batch, or of resident data, to its device takes.

        Called after the last burst. None: it computes on the CPU, or cannot tell.
        """
        return None

    def train(self, commands: TrainCommands) -> None:
        """Serves bursts until `commands.next()` returns None.

        The default calls `run` for each. A framework whose own loop must stay alive
        between bursts (Keras ``fit``) overrides this: it enters its loop here and asks
        `commands` for the next burst from a callback inside that loop::

            class Bursts(keras.callbacks.Callback):
                def begin(self):                       # before the first step
                    command = self.commands.next()
                    if command is None:
                        self.model.stop_training = True
                        self.left = -1                 # leave the loop
                    else:
                        self.left = command.steps
                        self.start = time.monotonic_ns()

                def on_train_batch_end(self, batch, logs=None):
                    self.commands.mark()
                    self.left -= 1
                    if self.left == 0:
                        barrier()
                        ns = time.monotonic_ns() - self.start
                        self.commands.answer(RunResult(ns))
                        self.begin()

        `train` is entered at the first ``run`` after a ``build``, ``losses`` or
        ``parity`` and must return once `next` gave None; that first ``run`` is what
        the first `next` returns. An exception thrown by `next` or inside the loop may
        simply travel through `fit`: the worker answers the open command with it.
        """
        while True:
            command = commands.next()
            if command is None:
                return
            commands.answer(self.run(command.steps, commands.mark))

    def restore(self) -> None:
        """Initial weights and buffers, fresh optimizer state; the data goes on.

        May be called from within the framework's own training loop, between two steps.
        Compiled steps stay compiled.
        """
        raise AdapterError("this framework's adapter cannot go back to the beginning")

    def nudge(self, changes: Mapping[str, Array]) -> None:
        """Adds `changes`, by canonical name, to the parameters as they are now.

        Called right before the steps of a `run`, its time counts. May be called from
        within the training loop.
        """
        raise AdapterError("this framework's adapter cannot change parameters")

    def state(self) -> dict[str, Array]:
        """Parameters and buffers as training has left them, canonical.

        Averages of the weights are ``ema/<parameter>``, where the script keeps them.
        Training goes on from there at the next `run`, in the same place of the data.
        """
        raise AdapterError("this framework's adapter does not show its state")

    def rates(self, steps: Sequence[int]) -> Optional[list[float]]:
        """The learning rates of these steps of a training, counted from 0.

        None: the adapter cannot tell, or the rate is constant.
        """
        return None

    def request(self) -> Callable[[], None]:
        """After a build with `predict`: a function that answers one request.

        It predicts the next batch and returns when the whole output is computed: one
        step of `run` with a barrier of its own.
        """
        raise AdapterError("this framework's adapter does not answer requests")

    def processes(self) -> list[int]:
        """Ids of those that train beside this one, each with a device."""
        return []

    def close(self) -> None:  # noqa: B027
        """Releases what outlives the process by itself, e.g. helper processes."""


def load_adapter(
    name: str, options: Mapping[str, str] = MappingProxyType({})
) -> Adapter:
    """Imports ``bakeoff_runner.adapters.<name>_adapter`` and calls its ``make()``.

    Where the package has no such module, ``<name>_adapter`` on the path is taken; for
    several devices ``<name>_ranks``, where a process is needed for each (ranks.py).
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise AdapterError(f"'{name}' is not the name of a framework")
    package = "bakeoff_runner.adapters"
    modules = [f"{package}.{name}_adapter", f"{name}_adapter"]
    if options.get("devices", "1") != "1":
        modules.insert(0, f"{package}.{name}_ranks")
    for module_name in modules:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name:
                raise
            continue
        if hasattr(module, "needed") and not module.needed(options):
            continue
        adapter = module.make()
        if not isinstance(adapter, Adapter):
            raise TypeError(f"{module_name}.make() did not return an Adapter")
        return adapter
    raise AdapterError(f"there is no adapter for framework '{name}'")
