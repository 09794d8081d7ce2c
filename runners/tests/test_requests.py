"""Requests that arrive by themselves, through a worker of the fake framework."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any, Optional

import pytest
from supervisor import WorkerProcess

from bakeoff_runner.requests import serve

MS = 1_000_000


def ready(**options: str) -> WorkerProcess:
    worker = WorkerProcess("fake")
    assert worker.ask("import", options=options, threads=1)["ok"]
    assert worker.ask("build", script="none.py", scenario="predict", train=False)["ok"]
    return worker


def ask(
    worker: WorkerProcess,
    out: Path,
    requests: int,
    arrivals: Optional[list[int]] = None,
    limit_ns: int = 10_000 * MS,
) -> tuple[dict[str, Any], list[int], list[int]]:
    """The answer, and start and end of every request."""
    schedule = None
    if arrivals is not None:
        schedule = out.with_name("arrivals")
        schedule.write_bytes(array("q", arrivals).tobytes())
    answer = worker.ask(
        "serve",
        requests=requests,
        limit_ns=limit_ns,
        arrivals=None if schedule is None else str(schedule),
        out=str(out),
    )
    times = array("q")
    if answer["ok"]:
        times.frombytes(out.read_bytes())
    return answer, list(times[::2]), list(times[1::2])


def test_single_stream_begins_a_request_when_the_last_is_answered(
    tmp_path: Path,
) -> None:
    with ready(step_ms="2") as worker:
        answer, start, end = ask(worker, tmp_path / "out", 20)
    assert answer["ok"] and answer["requests"] == 20
    assert len(start) == len(end) == 20 and end[-1] <= answer["ns"]
    assert all(e - s >= 2 * MS for s, e in zip(start, end))
    assert all(s >= e for s, e in zip(start[1:], end))


def test_an_open_loop_waits_for_arrivals_and_for_nobody_else(tmp_path: Path) -> None:
    # Two together, a pause, then four together: those wait for those before them.
    arrivals = [5 * MS, 5 * MS, 60 * MS, 60 * MS, 60 * MS, 60 * MS]
    with ready(step_ms="4", busy="1") as worker:
        answer, start, end = ask(worker, tmp_path / "out", 6, arrivals)
    assert answer["ok"]
    assert all(s >= a for s, a in zip(start, arrivals))
    assert all(s >= e for s, e in zip(start[1:], end))
    assert end[5] - arrivals[5] >= 4 * 4 * MS  # latency counts from the arrival
    assert start[2] >= 60 * MS


def test_no_request_is_dropped_because_the_server_is_late(tmp_path: Path) -> None:
    """A closed loop would ask for less while the server is slow: this one does not."""
    arrivals = [MS * i for i in range(1, 31)]
    with ready(step_ms="3", busy="1") as worker:
        _, start, end = ask(worker, tmp_path / "out", 30, arrivals)
    assert len(end) == 30
    waits = [s - a for s, a in zip(start, arrivals)]
    assert waits[-1] >= 29 * 2 * MS - 3 * MS  # each comes 1 ms later, and takes 3


def test_a_limit_ends_it(tmp_path: Path) -> None:
    with ready(step_ms="5") as worker:
        answer, start, end = ask(worker, tmp_path / "out", 1000, limit_ns=40 * MS)
    assert answer["ok"] and answer["requests"] == len(start) == len(end)
    assert 1 <= len(end) <= 8 and end[-1] >= 40 * MS


def test_failures_are_answers(tmp_path: Path) -> None:
    with ready(crash_step="3") as worker:
        answer, _, _ = ask(worker, tmp_path / "out", 10)
        assert not answer["ok"] and answer["stage"] == "serve"
        answer, _, _ = ask(worker, tmp_path / "out", 10, [1, 2, 3])
        assert not answer["ok"] and "3 arrivals, not 10" in answer["error"]
        answer, _, _ = ask(worker, tmp_path / "out", 3, [1, 3, 2])
        assert not answer["ok"] and "do not ascend" in answer["error"]
        answer = worker.ask("serve", requests=0, limit_ns=1, out="x", arrivals=None)
        assert not answer["ok"] and answer["stage"] == "protocol"
        assert worker.ask("build", script="none.py")["ok"]
        answer, _, _ = ask(worker, tmp_path / "out", 1)
        assert not answer["ok"] and "scenario 'predict'" in answer["error"]


def test_serve_counts_from_one_beginning() -> None:
    served = serve(lambda: None, [0, 2 * MS, 3 * MS], 3, 1000 * MS)
    assert served.start[1] >= 2 * MS and served.start[2] >= 3 * MS
    assert list(served.start) == sorted(served.start)
    assert served.ns >= served.end[2]


if __name__ == "__main__":
    pytest.main([__file__])
