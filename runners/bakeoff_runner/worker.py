"""The worker: serves one supervisor, one request at a time, until ``close``.

The loop is an iterator of commands rather than a dispatcher calling into the adapter:
an adapter whose framework insists on its own training loop pulls commands from inside
that loop (see `Adapter.train`). `_Session` is both ends of that.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from bakeoff_runner import PROTOCOL_VERSION
from bakeoff_runner.adapter import (
    Adapter,
    AdapterError,
    BuildRequest,
    ParityRequest,
    RunCommand,
    RunResult,
    TrainCommands,
    load_adapter,
)
from bakeoff_runner.channel import Channel, ProtocolError, Request
from bakeoff_runner.nvtx import NvtxError, Ranges, ranges_from
from bakeoff_runner.requests import read_arrivals, serve, write_times
from bakeoff_runner.ring import marker
from bakeoff_runner.tensors import read_safetensors, write_safetensors

REQUEST_FD = 3
ANSWER_FD = 4

Fields = dict[str, Any]
Changes = Mapping[str, Any]  # changes of parameters: arrays by canonical name


class _Session(TrainCommands):
    """The requests of one worker; passes bursts to the training loop."""

    def __init__(
        self,
        channel: Channel,
        mark: Callable[[], None],
        between: Mapping[str, Callable[[Request], Fields]],
        nudge: Callable[[Changes], None],
        ranges: Optional[Ranges] = None,
    ) -> None:
        self._channel = channel
        self._mark = mark if ranges is None else ranges.marking(mark)
        self._ranges = ranges
        self._between = between  # operations that leave the training loop as it is
        self._nudge = nudge
        self._waiting: Optional[Request] = None  # received, not yet taken
        self._open: Optional[Request] = None  # taken by the training loop
        self._steps = 0
        self._started_ns = 0
        self._again: Optional[Callable[[], None]] = None  # marks a step, nudges again
        # Tells the outputs of the last burst of predictions.
        self._outputs: Optional[Callable[[], Sequence[Sequence[Any]]]] = None

    @property
    def mark(self) -> Callable[[], None]:
        """Of the burst under way."""
        return self._mark if self._again is None else self._again

    def receive(self) -> Optional[Request]:
        """The next request of any kind; None when the supervisor is gone."""
        if self._waiting is None:
            return self._channel.receive()
        request, self._waiting = self._waiting, None
        return request

    def put_back(self, request: Request) -> None:
        self._waiting = request

    def next(self) -> Optional[RunCommand]:
        if self._open is not None:
            raise RuntimeError("the last run has not been answered")
        while True:
            request = self.receive()
            if request is None:
                return None
            if request.op in self._between:
                self._serve_between(request)
                continue
            if request.op != "run":
                self.put_back(request)
                return None
            try:
                steps = _count(request, "steps")
                file = _path(request, "nudge")
                every = _count(request, "nudge_every", steps)
            except ProtocolError as error:
                self._channel.fail(request.id, "protocol", error)
                continue
            self._again = self._outputs = None
            if file is not None:
                try:
                    changes = read_safetensors(file)
                    self._nudge(changes)
                except Exception as error:
                    self._channel.fail(request.id, "run", error)
                    continue
                if every < steps:
                    self._again = self._nudging(changes, every)
            self._open, self._steps = request, steps
            if self._ranges is not None:
                self._ranges.begin(steps)
            self._started_ns = time.monotonic_ns()
            return RunCommand(steps, file, every)

    def _nudging(self, changes: Changes, every: int) -> Callable[[], None]:
        """Marks steps; after each `every` of them the parameters change again."""
        left = every

        def mark() -> None:
            nonlocal left
            self._mark()
            left -= 1
            if left == 0:
                self._nudge(changes)
                left = every

        return mark

    def _serve_between(self, request: Request) -> None:
        try:
            self._channel.answer(request.id, self._between[request.op](request))
        except BrokenPipeError:
            raise
        except ProtocolError as error:
            self._channel.fail(request.id, "protocol", error)
        except Exception as error:
            self._channel.fail(request.id, request.op, error)

    def answer(self, result: RunResult) -> None:
        wall_ns = time.monotonic_ns() - self._started_ns
        if self._open is None:
            raise RuntimeError("no run is waiting for an answer")
        if not 0 < result.ns <= wall_ns:
            raise RuntimeError(
                f"the adapter claims {result.ns} ns for a run of {wall_ns} ns"
            )
        request, self._open = self._open, None
        if self._ranges is not None:
            self._ranges.end()
        self._channel.answer(
            request.id,
            {
                "ns": result.ns,
                "wall_ns": wall_ns,
                "steps": self._steps if result.steps is None else result.steps,
                "loss": result.loss,
                **_told("wait", None if result.wait is None else asdict(result.wait)),
                **_told("losses", result.losses),
                **_told("mean_loss", result.mean_loss),
                **_told("sums", result.sums),
            },
        )
        self._outputs = result.outputs

    def outputs(self) -> Fields:
        """Of the last burst of predictions, once."""
        if self._outputs is None:
            raise ProtocolError("there are no outputs of a burst of predictions")
        tell, self._outputs = self._outputs, None
        return {"outputs": tell()}

    def abandon(self, error: BaseException) -> bool:
        """Answers an open run with `error`; False if none was open."""
        if self._open is None:
            return False
        request, self._open = self._open, None
        if self._ranges is not None:
            self._ranges.end()
        self._channel.fail(request.id, "run", error)
        return True


class Worker:
    """Maps requests to the adapter of one framework."""

    def __init__(self, framework: str, channel: Channel, ring: Optional[str]) -> None:
        self._framework = framework
        self._channel = channel
        ranges: Optional[Ranges] = None
        self._nvtx: Fields = {}  # effective settings, where ranges are asked for
        try:
            ranges = ranges_from()
            self._nvtx = {} if ranges is None else {"nvtx": True}
        except NvtxError as error:
            self._nvtx = {"nvtx": f"no ranges: {error}"}
        between: Mapping[str, Callable[[Request], Fields]] = {
            "memory": lambda _: self._memory(),
            "outputs": lambda _: self._session.outputs(),
            "restore": self._restore,
        }
        self._session = _Session(channel, marker(ring), between, self._nudge, ranges)
        self._adapter: Optional[Adapter] = None
        self._built = False
        self._predicts = False
        self._operations: Mapping[str, Callable[[Request], Fields]] = {
            "import": self._import,
            "build": self._build,
            "parity": self._parity,
            "losses": self._losses,
            "batches": self._batches,
            "serve": self._serve_requests,
            "state": self._state,
            "rates": self._rates,
            "transfer": self._transfer,
            **between,
        }

    def serve(self) -> None:
        """Says hello, then answers every request exactly once until ``close``."""
        self._channel.answer(
            0,
            {
                "event": "hello",
                "protocol": PROTOCOL_VERSION,
                "pid": os.getpid(),
                "python": platform.python_version(),
                "framework": self._framework,
            },
        )
        while True:
            request = self._session.receive()
            if request is None or self._serve_one(request):
                return

    def _serve_one(self, request: Request) -> bool:
        """Serves one request; True when it was the last."""
        stage = request.op
        try:
            if request.op == "close":
                if self._adapter is not None:
                    self._adapter.close()
                _flush_streams()
                self._channel.answer(request.id, {})
                return True
            if request.op == "run":
                self._train(request)
                return False
            operation = self._operations.get(request.op)
            if operation is None:
                stage = "protocol"
                raise ProtocolError(f"unknown op '{request.op}'")
            self._channel.answer(request.id, operation(request))
        except BrokenPipeError:
            raise
        except ProtocolError as error:
            self._channel.fail(request.id, "protocol", error)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._channel.fail(request.id, stage, error)
        _flush_streams()
        return False

    def _train(self, request: Request) -> None:
        self._require_build()
        self._session.put_back(request)
        try:
            self._the_adapter().train(self._session)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            if not self._session.abandon(error):
                raise RuntimeError("training failed between two runs") from error
            return
        left = RuntimeError("the training loop ended before the burst was complete")
        self._session.abandon(left)

    def _import(self, request: Request) -> Fields:
        if self._adapter is not None:
            raise ProtocolError("the framework is imported already")
        options = _options(request)
        threads = _count(request, "threads")
        start = time.monotonic_ns()
        adapter = load_adapter(self._framework, options)
        info = adapter.import_framework(options, threads)
        elapsed = time.monotonic_ns() - start
        self._adapter = adapter
        return {
            "import_ns": elapsed,
            "versions": info.versions,
            "processes": adapter.processes(),
            "device": info.device,
            "effective": {**info.effective, **self._nvtx},
        }

    def _build(self, request: Request) -> Fields:
        adapter = self._the_adapter()
        script = _path(request, "script")
        if script is None:
            raise ProtocolError("'script' is missing")
        build = BuildRequest(
            script=script,
            weights=_path(request, "weights"),
            data=_path(request, "data"),
            layout=_path(request, "layout"),
            dropout=_flag(request, "dropout", True),
            train=_flag(request, "train", True),
            predict=_predicts(request),
            generate=request.fields.get("scenario") == "generate",
            dtype=_dtype(request),
            batch=_count(request, "batch") if "batch" in request.fields else None,
            fields=request.fields,
        )
        self._built = False
        start = time.monotonic_ns()
        effective = adapter.build(build)
        elapsed = time.monotonic_ns() - start
        self._built = True
        self._predicts = build.predict
        return {"build_ns": elapsed, "effective": effective}

    def _parity(self, request: Request) -> Fields:
        batch = request.fields.get("batch")
        if (
            not isinstance(batch, list)
            or len(batch) != 2
            or not all(type(n) is int for n in batch)
            or batch[0] < 0
            or batch[1] < 1
        ):
            raise ProtocolError("'batch' is not [first, count]")
        out = _path(request, "out")
        if out is None:
            raise ProtocolError("'out' is missing")
        self._require_build()
        tensors = self._the_adapter().parity(
            ParityRequest(
                batch[0],
                batch[1],
                _path(request, "grads_in"),
                _flag(request, "activations", False),
            )
        )
        tensors = {name: _at_least_float32(array) for name, array in tensors.items()}
        write_safetensors(out, tensors)
        return {"tensors": sorted(tensors)}

    def _losses(self, request: Request) -> Fields:
        steps = _count(request, "steps")
        self._require_build()
        if self._predicts:
            raise ProtocolError("there are no losses in the scenario 'predict'")
        result = self._the_adapter().losses(steps)
        if len(result.losses) != steps:
            raise RuntimeError(f"{len(result.losses)} losses of {steps} steps")
        return {
            "losses": [float(loss) for loss in result.losses],
            "first_ns": result.first_ns,
            "ns": result.ns,
        }

    def _batches(self, request: Request) -> Fields:
        count = _count(request, "count")
        shapes = request.fields.get("row_shapes")
        if not isinstance(shapes, list) or not all(_is_shape(s) for s in shapes):
            raise ProtocolError("'row_shapes' is not a list of shapes")
        self._require_build()
        if self._predicts:
            raise ProtocolError("there is no training in the scenario 'predict'")
        hashes = self._the_adapter().batch_hashes(count, shapes)
        if hashes is not None and len(hashes) != count:
            raise RuntimeError(f"{len(hashes)} batches of {count}")
        return {"sha256": hashes}

    def _state(self, request: Request) -> Fields:
        out = _path(request, "out")
        if out is None:
            raise ProtocolError("'out' is missing")
        self._require_build()
        tensors = self._the_adapter().state()
        write_safetensors(out, tensors)
        return {"tensors": sorted(tensors)}

    def _rates(self, request: Request) -> Fields:
        steps = request.fields.get("steps")
        if not isinstance(steps, list) or not all(type(n) is int for n in steps):
            raise ProtocolError("'steps' is not a list of integers")
        self._require_build()
        found = self._the_adapter().rates(steps)
        return {"rates": None if found is None else [float(rate) for rate in found]}

    def _restore(self, request: Request) -> Fields:
        self._require_build()
        self._the_adapter().restore()
        return {}

    def _nudge(self, changes: Changes) -> None:
        self._the_adapter().nudge(changes)

    def _serve_requests(self, request: Request) -> Fields:
        requests, limit_ns = _count(request, "requests"), _count(request, "limit_ns")
        arrivals, out = _path(request, "arrivals"), _path(request, "out")
        if out is None:
            raise ProtocolError("'out' is missing")
        self._require_build()
        if not self._predicts:
            raise ProtocolError("requests belong to the scenario 'predict'")
        times = None if arrivals is None else read_arrivals(arrivals, requests)
        adapter = self._the_adapter()
        answer, before = adapter.request(), adapter.compilations()
        served = serve(answer, times, requests, limit_ns)
        write_times(out, served)
        return {
            "ns": served.ns,
            "requests": len(served.start),
            "compilations": adapter.compilations() - before,
        }

    def _transfer(self, request: Request) -> Fields:
        self._require_build()
        found = self._the_adapter().transfer()
        return {"transfer": None if found is None else vars(found)}

    def _memory(self) -> Fields:
        answer = memory()
        if self._adapter is None:
            answer["allocator_absent"] = "the framework is not imported yet"
            return answer
        try:
            peak = self._adapter.allocator_peak()
        except Exception as error:  # a number less, never a failure
            peak = f"{type(error).__name__}: {error}".splitlines()[0]
        if isinstance(peak, int):
            answer["allocator_peak_bytes"] = peak
        else:
            answer["allocator_absent"] = peak
        return answer

    def _the_adapter(self) -> Adapter:
        if self._adapter is None:
            raise ProtocolError("the framework is not imported yet")
        return self._adapter

    def _require_build(self) -> None:
        self._the_adapter()
        if not self._built:
            raise ProtocolError("nothing is built")


def memory() -> Fields:
    """Peak and present resident set of this process, in bytes."""
    sizes: dict[str, int] = {}
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            key, _, value = line.partition(":")
            if key in ("VmHWM", "VmRSS"):
                sizes[key] = int(value.split()[0]) * 1024
    return {"peak_rss_bytes": sizes["VmHWM"], "rss_bytes": sizes["VmRSS"]}


def _options(request: Request) -> dict[str, str]:
    options = request.fields.get("options", {})
    if not isinstance(options, dict):
        raise ProtocolError("'options' is not an object")
    for key, value in options.items():
        if not isinstance(value, str):
            raise ProtocolError(f"option '{key}' is not a string")
    return options


def _count(request: Request, key: str, otherwise: Optional[int] = None) -> int:
    value = request.fields.get(key, otherwise)
    if type(value) is not int or value < 1:
        raise ProtocolError(f"'{key}' is not a positive integer")
    return value


def _told(key: str, value: Any) -> Fields:
    """A field of an answer; none where there is nothing to tell."""
    return {} if value is None else {key: value}


def _at_least_float32(array: Any) -> Any:
    """Half precision has no place in the files that are compared."""
    half = array.dtype.name in ("float16", "bfloat16")
    return array.astype("float32") if half else array


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n > 0 for n in value)


def _flag(request: Request, key: str, default: bool) -> bool:
    value = request.fields.get(key, default)
    if not isinstance(value, bool):
        raise ProtocolError(f"'{key}' is not true or false")
    return value


def _predicts(request: Request) -> bool:
    scenario = request.fields.get("scenario", "train")
    if scenario not in ("train", "predict", "generate"):
        raise ProtocolError(f"'scenario' {scenario!r} is not train, predict, generate")
    return bool(scenario != "train")


def _dtype(request: Request) -> str:
    dtype = request.fields.get("dtype", "float32")
    if dtype not in ("float32", "float64"):
        raise ProtocolError(f"'dtype' {dtype!r} is not float32 or float64")
    return str(dtype)


def _path(request: Request, key: str) -> Optional[Path]:
    value = request.fields.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ProtocolError(f"'{key}' is not a path")
    return Path(value)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass


def _prepare_streams() -> None:
    """Makes the log tell the end of the story, whatever the end is."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    faulthandler.enable()  # a Python stack in the log at SIGSEGV, SIGABRT, ...


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs a worker; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="bakeoff_runner", description="The worker side of Bakeoff."
    )
    parser.add_argument("--framework", required=True, help="whose adapter serves")
    parser.add_argument("--ring", help="file of step marks, see ring.py")
    options = parser.parse_args(arguments)
    _prepare_streams()
    try:
        channel = Channel(REQUEST_FD, ANSWER_FD)
    except OSError:
        parser.error(
            f"descriptors {REQUEST_FD} and {ANSWER_FD} are the control channel, "
            "which a supervisor opens (docs/runner_protocol.md)"
        )
    try:
        worker = Worker(options.framework, channel, options.ring)
    except (OSError, ValueError, AdapterError) as error:
        channel.fail(0, "start", error)
        return 2
    try:
        worker.serve()
    except BrokenPipeError:
        return 1
    return 0
