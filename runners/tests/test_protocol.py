"""The worker as its supervisor sees it, with the fake framework."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from supervisor import RUNNERS, WorkerProcess

from bakeoff_runner.ring import create_ring, read_ring


def test_says_hello_unasked() -> None:
    with WorkerProcess() as worker:
        assert worker.hello == {
            "id": 0,
            "ok": True,
            "event": "hello",
            "protocol": 1,
            "pid": worker.process.pid,
            "python": sys.version.split()[0],
            "framework": "fake",
        }


def test_whole_session() -> None:
    with WorkerProcess() as worker:
        answer = worker.ask("import", options={}, threads=2)
        assert answer["ok"] and answer["import_ns"] > 0
        assert answer["versions"] == {"fake": "1.0"}
        assert answer["device"] == "cpu"
        assert answer["effective"] == {"threads": 2}
        answer = worker.ask("build", script="/some/where.py", dtype="float64")
        assert answer["ok"] and answer["build_ns"] >= 0
        assert answer["effective"]["dtype"] == "float64"
        assert answer["effective"]["script"] == "where.py"
        answer = worker.ask("losses", steps=3)
        assert answer["losses"] == pytest.approx([4.5, 4.5 * 0.81, 4.5 * 0.81**2])
        assert 0 < answer["first_ns"] <= answer["ns"]
        answer = worker.ask("run", steps=2)
        assert answer["steps"] == 2 and 0 < answer["ns"] <= answer["wall_ns"]
        assert answer["loss"] == pytest.approx(4.5 * 0.81**4)
        assert worker.ask("close") == {"id": 5, "ok": True}
        assert worker.process.wait(worker.patience) == 0


def test_second_build_starts_afresh() -> None:
    with WorkerProcess() as worker:
        worker.ready()
        first = worker.ask("run", steps=4)["loss"]
        assert worker.ask("run", steps=1)["loss"] < first
        assert worker.ask("build", script="other.py")["ok"]
        assert worker.ask("run", steps=4)["loss"] == first


def test_a_build_that_predicts_has_no_losses() -> None:
    with WorkerProcess() as worker:
        worker.ready()
        assert worker.ask("losses", steps=1)["ok"]
        assert worker.ask("build", script="x.py", scenario="predict", train=False)["ok"]
        answer = worker.ask("losses", steps=1)
        assert not answer["ok"] and answer["stage"] == "protocol"
        assert "no losses in the scenario 'predict'" in answer["error"]
        assert worker.ask("run", steps=1)["ok"]
        answer = worker.ask("build", script="x.py", scenario="fit")
        assert not answer["ok"]
        assert "'fit' is not train, predict, generate" in answer["error"]


def test_memory_at_any_time_and_between_runs() -> None:
    with WorkerProcess() as worker:
        before = worker.ask("memory")
        assert 1 << 20 < before["rss_bytes"] <= before["peak_rss_bytes"]
        worker.ready()
        assert worker.ask("run", steps=1)["ok"]
        assert worker.ask("memory")["peak_rss_bytes"] >= before["peak_rss_bytes"]
        assert worker.ask("run", steps=1)["ok"]


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ({"allocator_mb": "96"}, "allocator_peak_bytes", 96 << 20),
        ({}, "allocator_absent", "this framework keeps no count"),
        (
            {"allocator_mb": "much"},
            "allocator_absent",
            "ValueError: invalid literal for int() with base 10: 'much'",
        ),
    ],
)
def test_memory_has_the_allocators_peak_or_why_not(
    options: dict, key: str, value: object
) -> None:
    with WorkerProcess() as worker:
        before = worker.ask("memory")
        assert before["allocator_absent"] == "the framework is not imported yet"
        worker.ready(**options)
        assert worker.ask("run", steps=1)["ok"]
        answer = worker.ask("memory")
        assert answer["ok"]
        assert answer[key] == value
        assert ("allocator_peak_bytes" in answer) != ("allocator_absent" in answer)


def test_a_copy_to_the_device_is_told_by_who_can() -> None:
    with WorkerProcess() as worker:
        assert worker.ask("transfer")["error"].endswith("is not imported yet")
        worker.ready(transfer_us="800")
        assert worker.ask("run", steps=1)["ok"]
        told = {"of": "batch", "ns": 800_000, "bytes": 4096}
        assert worker.ask("transfer")["transfer"] == told
        assert worker.ask("run", steps=1)["ok"], "training goes on"
    with WorkerProcess() as worker:
        worker.ready()
        assert worker.ask("transfer")["transfer"] is None
    with WorkerProcess() as worker:
        worker.ready(transfer_us="broken")
        assert not worker.ask("transfer")["ok"]


def test_losses_that_are_no_numbers_are_strings() -> None:
    with WorkerProcess() as worker:
        worker.ready(nan_step="2")
        assert worker.ask("losses", steps=3)["losses"] == [4.5, "nan", "nan"]
        assert worker.ask("run", steps=1)["loss"] == "nan"


@pytest.mark.parametrize(
    ("op", "fields", "error"),
    [
        ("dance", {}, "unknown op 'dance'"),
        ("run", {"steps": 1}, "the framework is not imported yet"),
        ("build", {"script": "x.py"}, "the framework is not imported yet"),
        ("import", {"options": [], "threads": 1}, "'options' is not an object"),
        ("import", {"options": {"a": 1}, "threads": 1}, "option 'a' is not a string"),
        ("import", {"threads": 0}, "'threads' is not a positive integer"),
    ],
)
def test_bad_requests_are_answered(op: str, fields: dict, error: str) -> None:
    with WorkerProcess() as worker:
        answer = worker.ask(op, **fields)
        assert not answer["ok"]
        assert answer["stage"] == "protocol"
        assert error in answer["error"]
        assert worker.ask("memory")["ok"]


@pytest.mark.parametrize(
    ("op", "fields", "error"),
    [
        ("import", {"threads": 1}, "imported already"),
        ("build", {}, "'script' is missing"),
        ("build", {"script": "x", "dropout": 1}, "'dropout' is not true or false"),
        ("build", {"script": "x", "dtype": "int8"}, "'dtype' 'int8' is not float32"),
        ("build", {"script": "x", "batch": 0}, "'batch' is not a positive integer"),
        ("build", {"script": "x", "weights": 3}, "'weights' is not a path"),
        ("run", {"steps": 0}, "'steps' is not a positive integer"),
        ("run", {"steps": True}, "'steps' is not a positive integer"),
        ("losses", {}, "'steps' is not a positive integer"),
        ("parity", {"batch": [0], "out": "x"}, "'batch' is not [first, count]"),
        ("parity", {"batch": [0, 0], "out": "x"}, "'batch' is not [first, count]"),
        ("parity", {"batch": [0, 1]}, "'out' is missing"),
    ],
)
def test_bad_fields_are_answered(op: str, fields: dict, error: str) -> None:
    with WorkerProcess() as worker:
        worker.ready()
        answer = worker.ask(op, **fields)
        assert not answer["ok"]
        assert answer["stage"] == "protocol"
        assert error in answer["error"]
        assert worker.ask("run", steps=1)["ok"]


def test_nothing_built_is_said() -> None:
    with WorkerProcess() as worker:
        worker.ask("import", options={}, threads=1)
        for op, fields in (("run", {"steps": 1}), ("losses", {"steps": 1})):
            assert "nothing is built" in worker.ask(op, **fields)["error"]


def test_lines_that_are_no_requests() -> None:
    with WorkerProcess() as worker:
        for line, number in (
            ("garbage", 0),
            ("[1]", 0),
            ('{"op": "memory"}', 0),
            ('{"id": -1, "op": "memory"}', -1),
            ('{"id": 7}', 7),
            ('{"id": true, "op": "memory"}', 0),
        ):
            worker.send_line(line)
            answer = worker.receive()
            assert (answer["id"], answer["ok"]) == (number, False), line
            assert answer["stage"] == "protocol"
        worker.send_line("")
        assert worker.ask("memory")["ok"]


def test_framework_failure_names_stage_error_and_place() -> None:
    with WorkerProcess() as worker:
        worker.ready(crash_step="3")
        answer = worker.ask("run", steps=5)
        assert not answer["ok"]
        assert answer["stage"] == "run"
        assert answer["error"] == "RuntimeError: fake: asked to crash"
        assert "in _train_step" in answer["traceback"]
        assert worker.ask("memory")["ok"]  # it lives on


@pytest.mark.parametrize("stage", ["import", "build", "losses", "close"])
def test_failure_in_every_stage(stage: str) -> None:
    with WorkerProcess() as worker:
        options = {"crash_at": stage}
        answers = {
            "import": worker.ask("import", options=options, threads=1),
            "build": worker.ask("build", script="x.py"),
            "losses": worker.ask("losses", steps=2),
            "close": worker.ask("close"),
        }
        assert not answers[stage]["ok"]
        assert answers[stage]["stage"] == stage


def test_unknown_framework_and_option() -> None:
    with WorkerProcess("nonesuch") as worker:
        answer = worker.ask("import", options={}, threads=1)
        assert answer["error"] == "there is no adapter for framework 'nonesuch'"
    with WorkerProcess() as worker:
        answer = worker.ask("import", options={"speed": "9"}, threads=1)
        assert "unknown option 'speed'" in answer["error"]


def test_ends_when_the_supervisor_is_gone() -> None:
    with WorkerProcess() as worker:
        worker.ready()
        worker.hang_up()
        assert worker.process.wait(worker.patience) == 0


def test_marks_go_to_the_ring(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    create_ring(ring, 16)
    with WorkerProcess(ring=ring) as worker:
        worker.ready(step_ms="1")
        begin = time.monotonic_ns()
        answer = worker.ask("run", steps=5)
        marks = read_ring(ring)
        assert len(marks) == 5
        assert begin < marks[0] and marks[-1] < time.monotonic_ns()
        assert marks[-1] - marks[0] < answer["ns"]
        assert worker.ask("run", steps=20)["ok"]
        assert len(read_ring(ring)) == 16


def test_missing_ring_is_told(tmp_path: Path) -> None:
    with WorkerProcess(ring=tmp_path / "missing") as worker:
        assert (worker.hello["id"], worker.hello["ok"]) == (0, False)
        assert worker.hello["stage"] == "start"
        assert worker.process.wait(worker.patience) == 2


def test_output_of_the_framework_stays_out_of_the_channel() -> None:
    with WorkerProcess() as worker:
        worker.ready(crash_at="close")
        worker.ask("close")
        worker.hang_up()
        output = worker.process.communicate(timeout=worker.patience)[0]
        assert b"fake: crashing by raise" in output


def test_without_a_channel_it_explains_itself() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "bakeoff_runner", "--framework", "fake"],
        cwd=RUNNERS,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert "docs/runner_protocol.md" in result.stderr


def test_core_needs_the_standard_library_only() -> None:
    program = (
        "import json, sys\n"
        "import bakeoff_runner.worker, bakeoff_runner.layout, bakeoff_runner.script\n"
        "sys.path.append('tests')\n"
        "import fake_adapter\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=RUNNERS,
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(json.loads(result.stdout)) - {"bakeoff_runner", "fake_adapter"}
    foreign = {name for name in names if not _is_standard(name)}
    assert foreign == set()


def _is_standard(name: str) -> bool:
    if name.startswith("_") or name in sys.builtin_module_names:
        return True
    return name in getattr(sys, "stdlib_module_names", {name})
