"""Ranges for profilers, with a library of the same interface as NVIDIA's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
from supervisor import WorkerProcess

from bakeoff_runner.nvtx import NvtxError, Ranges, ranges_from

FAKE = """
#include <stdio.h>
#include <stdlib.h>
static int depth = 0;
static void say(const char* what) {
  FILE* file = fopen(getenv("FAKE_NVTX_LOG"), "a");
  fprintf(file, "%d %s\\n", depth, what);
  fclose(file);
}
int nvtxRangePushA(const char* name) { say(name); return depth++; }
int nvtxRangePop(void) { --depth; say("end"); return depth; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("nvtx")
    (folder / "fake.c").write_text(FAKE)
    made = folder / "libfake_nvtx.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(made), str(folder / "fake.c")]
    subprocess.run(command, check=True)
    return made


@pytest.fixture
def log(tmp_path: Path, monkeypatch: Any) -> Iterator[Path]:
    path = tmp_path / "log"
    monkeypatch.setenv("FAKE_NVTX_LOG", str(path))
    yield path


def test_a_burst_is_a_range_and_each_step_one_in_it(library: Path, log: Path) -> None:
    ranges = Ranges(str(library))
    marks: list[int] = []
    mark = ranges.marking(lambda: marks.append(1))
    ranges.begin(2)
    mark()
    mark()
    ranges.end()
    assert len(marks) == 2
    assert log.read_text().splitlines() == [
        "0 2 steps",
        "1 step 1",
        "1 end",
        "1 step 2",
        "1 end",
        "0 end",
    ]


@pytest.mark.parametrize("marks", [0, 1, 2, 3, 5])
def test_whatever_is_marked_all_ranges_are_closed(
    library: Path, log: Path, marks: int
) -> None:
    ranges = Ranges(str(library))
    mark = ranges.marking(lambda: None)
    for _ in range(2):
        ranges.begin(3)
        for _ in range(marks):
            mark()
        ranges.end()
    lines = log.read_text().splitlines()
    assert lines.count("0 3 steps") == lines.count("0 end") == 2
    assert not any(line.startswith("-") for line in lines)


def test_a_worker_with_them(library: Path, log: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("BAKEOFF_NVTX", str(library))
    with WorkerProcess() as worker:
        imported = worker.ask("import", options={}, threads=1)
        assert imported["effective"]["nvtx"] is True
        worker.ask("build", script="a.py")
        worker.ask("run", steps=1)
        worker.ask("run", steps=3)
    lines = log.read_text().splitlines()
    assert [line for line in lines if line.startswith("0 ")] == [
        "0 1 step",
        "0 end",
        "0 3 steps",
        "0 end",
    ]
    assert "1 step 3" in lines


def test_without_the_library_the_worker_says_so(monkeypatch: Any) -> None:
    monkeypatch.setenv("BAKEOFF_NVTX", "libno_such_library.so.1")
    with WorkerProcess() as worker:
        imported = worker.ask("import", options={}, threads=1)
        assert "libno_such_library.so.1" in imported["effective"]["nvtx"]
        worker.ask("build", script="a.py")
        assert worker.ask("run", steps=2)["steps"] == 2


def test_a_library_that_is_another(library: Path) -> None:
    with pytest.raises(NvtxError, match="nvtxRangePushA"):
        Ranges("libc.so.6")
    assert ranges_from({}) is None
    assert ranges_from({"BAKEOFF_NVTX": ""}) is None
    assert "BAKEOFF_NVTX" not in os.environ
