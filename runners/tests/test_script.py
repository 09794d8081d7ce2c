"""Loading scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bakeoff_runner.adapter import AdapterError
from bakeoff_runner.script import load_script, unload_script


def test_two_builds_of_one_file_are_two_modules(tmp_path: Path) -> None:
    path = tmp_path / "train-torch.py"
    path.write_text("VALUE = 1\n")
    first = load_script(path)
    path.write_text("VALUE = 2\n")  # the same size, within the same second
    second = load_script(path)
    assert (first.VALUE, second.VALUE) == (1, 2)
    assert first.__name__ != second.__name__
    assert sys.modules[second.__name__] is second
    unload_script(second)
    assert second.__name__ not in sys.modules
    assert [p.name for p in tmp_path.iterdir()] == ["train-torch.py"]


def test_main_part_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "if __name__ == '__main__':\n    raise SystemExit(3)\nDONE = True\n"
    )
    assert load_script(path).DONE


def test_dataclasses_work(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass State:\n    step: int = 0\n"
    )
    assert load_script(path).State(3).step == 3


def test_failing_script_leaves_no_module(tmp_path: Path) -> None:
    path = tmp_path / "broken_script.py"
    path.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        load_script(path)
    assert not [name for name in sys.modules if "broken_script" in name]


def test_missing_script_is_said(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="does not exist"):
        load_script(tmp_path / "none.py")
