"""An adapter whose framework keeps its own training loop, as Keras' fit does."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional

import pytest

from bakeoff_runner import worker as worker_module
from bakeoff_runner.adapter import (
    Adapter,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    RunResult,
    TrainCommands,
)
from bakeoff_runner.channel import Channel
from bakeoff_runner.worker import Worker


def fit(on_begin: Callable[[], bool], on_batch_end: Callable[[], bool]) -> None:
    """A foreign loop that knows batches and callbacks only; True means stop."""
    if on_begin():
        return
    while not on_batch_end():
        pass


class FitAdapter(Adapter):
    """Serves bursts from inside one `fit`."""

    def __init__(self) -> None:
        self.fits = 0
        self.batches = 0
        self.fail_at = -1
        self.end_at = -1
        self.lie = False

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        self.fail_at = int(options.get("fail_at", "-1"))
        self.end_at = int(options.get("end_at", "-1"))
        self.lie = "lie" in options
        return ImportInfo(versions={})

    def build(self, request: BuildRequest) -> dict[str, Any]:
        return {}

    def parity(self, request: ParityRequest) -> dict[str, Any]:
        raise NotImplementedError

    def losses(self, steps: int) -> LossesResult:
        return LossesResult([0.0] * steps, 1, 2)

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        raise AssertionError("the loop is the framework's")

    def train(self, commands: TrainCommands) -> None:
        self.fits += 1
        left = 0
        start = 0

        def begin() -> bool:
            nonlocal left, start
            command = commands.next()
            if command is None:
                return True
            left, start = command.steps, time.monotonic_ns()
            return False

        def batch_end() -> bool:
            nonlocal left
            self.batches += 1
            commands.mark()
            if self.batches == self.fail_at:
                raise ValueError("in the middle of fit")
            if self.batches == self.end_at:
                return True
            left -= 1
            if left > 0:
                return False
            ns = time.monotonic_ns() - start + (10**12 if self.lie else 0)
            commands.answer(RunResult(ns, float(self.batches)))
            return begin()

        fit(begin, batch_end)


class Session:
    """A `Worker` in a thread of this process, driven over two pipes."""

    def __init__(self, adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(worker_module, "load_adapter", lambda *_: adapter)
        request_read, self._request = os.pipe()
        self._answer, answer_write = os.pipe()
        self._lines = os.fdopen(self._answer, "rb")
        self.worker = Worker("any", Channel(request_read, answer_write), None)
        self.error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._id = 0
        assert self.receive()["event"] == "hello"

    def _serve(self) -> None:
        try:
            self.worker.serve()
        except BaseException as error:
            self.error = error

    def receive(self) -> dict[str, Any]:
        answer = json.loads(self._lines.readline())
        assert isinstance(answer, dict)
        return answer

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self._id += 1
        line = json.dumps({"id": self._id, "op": op, **fields}) + "\n"
        os.write(self._request, line.encode())
        answer = self.receive()
        assert answer["id"] == self._id
        return answer

    def ready(self, **options: str) -> Session:
        assert self.ask("import", options=options, threads=1)["ok"]
        assert self.ask("build", script="x.py")["ok"]
        return self

    def end(self) -> None:
        os.close(self._request)
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def adapter() -> FitAdapter:
    return FitAdapter()


@pytest.fixture
def session(adapter: FitAdapter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    session = Session(adapter, monkeypatch)
    yield session
    session.end()


def test_one_fit_serves_many_bursts(session: Session, adapter: FitAdapter) -> None:
    session.ready()
    for steps, total in ((3, 3), (5, 8), (1, 9)):
        answer = session.ask("run", steps=steps)
        assert answer["ok"], answer
        assert (answer["steps"], answer["loss"]) == (steps, total)
    assert adapter.fits == 1


def test_memory_does_not_leave_the_loop(session: Session, adapter: FitAdapter) -> None:
    session.ready()
    assert session.ask("run", steps=1)["ok"]
    assert session.ask("memory")["rss_bytes"] > 0
    assert session.ask("run", steps=1)["ok"]
    assert adapter.fits == 1


def test_bad_run_does_not_leave_the_loop(session: Session, adapter: FitAdapter) -> None:
    session.ready()
    assert session.ask("run", steps=1)["ok"]
    assert session.ask("run", steps="many")["stage"] == "protocol"
    assert session.ask("run", steps=2)["loss"] == 3
    assert adapter.fits == 1


def test_other_requests_leave_and_run_enters_again(
    session: Session, adapter: FitAdapter
) -> None:
    session.ready()
    assert session.ask("run", steps=2)["ok"]
    assert session.ask("losses", steps=2)["losses"] == [0.0, 0.0]
    assert session.ask("run", steps=2)["loss"] == 4
    assert adapter.fits == 2
    assert session.ask("build", script="y.py")["ok"]
    assert session.ask("run", steps=1)["ok"]
    assert adapter.fits == 3


def test_close_ends_the_loop(session: Session, adapter: FitAdapter) -> None:
    session.ready()
    assert session.ask("run", steps=2)["ok"]
    assert session.ask("close")["ok"]
    session._thread.join(10)
    assert not session._thread.is_alive()
    assert session.error is None


def test_error_inside_the_loop_answers_the_burst(session: Session) -> None:
    session.ready(fail_at="4")
    assert session.ask("run", steps=2)["ok"]
    answer = session.ask("run", steps=5)
    assert (answer["ok"], answer["stage"]) == (False, "run")
    assert answer["error"] == "ValueError: in the middle of fit"
    assert session.ask("run", steps=1)["ok"]


def test_loop_that_ends_too_early_answers_the_burst(session: Session) -> None:
    session.ready(end_at="3")
    answer = session.ask("run", steps=5)
    assert not answer["ok"]
    assert "ended before the burst was complete" in answer["error"]


def test_impossible_time_is_refused(session: Session) -> None:
    session.ready(lie="1")
    answer = session.ask("run", steps=2)
    assert not answer["ok"]
    assert "claims" in answer["error"]


def test_supervisor_gone_between_bursts(session: Session) -> None:
    session.ready()
    assert session.ask("run", steps=2)["ok"]
    # session.end() in the fixture closes the channel and expects the thread to end.


def test_train_is_also_what_plain_adapters_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import fake_adapter

    session = Session(fake_adapter.make(), monkeypatch).ready()
    first = session.ask("run", steps=1)["loss"]
    assert session.ask("run", steps=1)["loss"] < first
    session.end()
