"""Ranks without a framework (ranks.py); in PyTorch's environment, as numpy is there."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, Iterator, Optional

import pytest

np = pytest.importorskip("numpy")

import fake_ranks  # noqa: E402

from bakeoff_runner.adapter import (  # noqa: E402
    AdapterError,
    BuildRequest,
    ParityRequest,
    RunCommand,
    RunResult,
    TrainCommands,
    load_adapter,
)
from bakeoff_runner.adapters import ranks  # noqa: E402
from bakeoff_runner.adapters.ranks import Leader, free_addresses  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

BUILD = BuildRequest(Path("mine.py"), None, None, None)
PROOF = ParityRequest(0, 4, None)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths()))
    allowed, leaders = os.sched_getaffinity(0), []

    def start(fault: str = "") -> Leader:
        leaders.append(fake_ranks.make())
        info = leaders[-1].import_framework({"devices": "2", "fault": fault}, 2)
        assert info.effective["threads"] == 2
        os.sched_setaffinity(0, allowed)
        return leaders[-1]

    yield start
    for leader in leaders:
        leader.close()
        for pid in leader.processes():
            assert not Path(f"/proc/{pid}").exists()


def paths() -> list[str]:
    here = Path(__file__).parent
    return [str(here), str(here.parent)]


def built(leader: Leader) -> Leader:
    leader.build(BUILD)
    return leader


def test_answers_are_joined(started: Any) -> None:
    leader = built(started())
    found = leader.parity(PROOF)
    assert found["loss"] == 1.5
    assert found["output"].tolist() == [[0], [1]]
    assert found["grad/w"].tolist() == [1]
    assert leader.losses(2).losses == [1.5, 1.5]
    assert leader.run(3, lambda: None).losses == [1.5] * 3
    assert len(leader.processes()) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("batch", "rank 1 of mine.py has batch 8, rank 0 has 4"),
        ("gradient", "another grad/w than rank 0: gradients are not averaged"),
        ("statistics", "another buffer/mean than rank 0: statistics are not averaged"),
        ("masks", "ranks 0 and 1 of mine.py draw the same masks"),
        ("sums", "rank 1 of mine.py has another 'w' than rank 0 after a burst"),
        ("error", "rank 1: KeyError: 'boom'"),
        ("leaves", "rank 1: ended with exit code 3"),
        ("killed", r"rank 1: ended by signal 9 \(SIGKILL\)"),
        ("stopped", "rank 1: was stopped by a signal from outside"),
    ],
)
def test_a_rank_is_blamed(started: Any, fault: str, why: str) -> None:
    leader = started(fault)
    with pytest.raises(AdapterError, match=why):
        built(leader).parity(PROOF)
        leader.run(2, lambda: None)


def test_a_variable_that_is_set_later_spares_no_rank(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = built(started("sums"))
    monkeypatch.setenv("BAKEOFF_COMMUNICATION", "off")
    with pytest.raises(AdapterError, match="has another 'w' than rank 0"):
        leader.run(2, lambda: None)


@pytest.mark.parametrize("fault", ["hangs", "waits"])
def test_one_that_hangs_is_blamed(
    started: Any, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After rank 0 has done its part, and while it waits in a collective."""
    leader = built(started(fault))
    monkeypatch.setenv("BAKEOFF_STAGE_SECONDS", "1")
    with pytest.raises(AdapterError, match="rank 1: does not answer: it hangs"):
        leader.run(2, lambda: None)


def test_what_is_no_fault_of_the_others_is_raised(started: Any) -> None:
    with pytest.raises(ValueError, match="of rank 0 alone"):
        built(started("mine")).run(2, lambda: None)


def test_ranks_that_draw_nothing_are_no_twins(started: Any) -> None:
    built(started("none")).parity(PROOF)


def test_all_ranks_are_nudged(started: Any, tmp_path: Path) -> None:
    leader = built(started())
    changes = {"w": np.ones(1, "f4")}
    write_safetensors(tmp_path / "nudge.safetensors", changes)
    given = [RunCommand(4, tmp_path / "nudge.safetensors", 2)]
    answers: list[Optional[RunResult]] = []

    class Commands(TrainCommands):
        mark = staticmethod(lambda: None)  # type: ignore[assignment]

        def next(self) -> Optional[RunCommand]:
            return given.pop() if given else None

        def answer(self, result: RunResult) -> None:
            answers.append(result)

    leader.nudge(changes)  # as the worker does
    leader.train(Commands())
    assert len(answers) == 1
    folder = Path(leader._folder.name)
    for rank in (0, 1):
        assert (folder / f"met.nudged{rank}").read_text() == "['w']"


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_devices_of_one_process_need_no_ranks(framework: str) -> None:
    assert not isinstance(load_adapter(framework, {"devices": "2"}), Leader)
    several = {"devices": "2", "processes": "2"}
    assert isinstance(load_adapter(framework, several), Leader)


def test_addresses_differ_and_nobody_gets_one_by_chance() -> None:
    found = free_addresses(3)
    assert len(set(found)) == 3
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    below = [int(one.rpartition(":")[2]) < first for one in found]
    assert all(below) or first <= 10_000


def test_an_address_that_is_taken_is_not_given(monkeypatch: Any) -> None:
    address = free_addresses(1)[0]
    port = int(address.rpartition(":")[2])
    monkeypatch.setattr(ranks, "range", lambda *_: [port], raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        assert free_addresses(1) != [address]
    assert free_addresses(1) == [address]
