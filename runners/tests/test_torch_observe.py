"""Observing PyTorch scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from observed import Observed, bare, written
from tiers import full_tier

from bakeoff_observe import torch_hooks
from bakeoff_observe.profiles import self_times
from bakeoff_observe.values import sums_of

torch = pytest.importorskip("torch")

TRAIN = """
import gc
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

words = sys.argv[1:]
torch.manual_seed(1)
if "single" in words:
    torch.set_num_threads(1)
if "anomaly" in words:
    torch.autograd.set_detect_anomaly(True)
    torch.use_deterministic_algorithms(True)
if "double" in words:
    torch.set_default_dtype(torch.float64)
images = torch.rand(88, 3, 8, 8)
sums = images.sum(dim=(1, 2, 3)).unsqueeze(1)
sums[16:] += 1e5  # of the first batch nothing like it is to be seen
model = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 1)
)
if "half" in words:
    model, images, sums = model.to(torch.bfloat16), images.bfloat16(), sums.half()
if "compile" in words:
    model = torch.compile(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
other = torch.optim.SGD([nn.Parameter(torch.ones(3))], lr=1.0)
workers = 2 if "workers" in words else 0
loader = DataLoader(TensorDataset(images, sums), batch_size=16, num_workers=workers)

def main():
    for epoch in range(4):
        for x, y in loader:
            with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in words):
                loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            other.step()
            gc.collect()
        print(epoch, float(loss).hex())

if __name__ == "__main__":
    main()
"""
STEPS = 24

# Mistakes, and a network that is slow.
WRONG = """
import sys
import torch
from torch import nn

words = sys.argv[1:]
torch.manual_seed(1)
torch.set_num_threads(1)  # small ones: others work beside this
if "slow" in words:
    torch.backends.mkldnn.enabled = False

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 8)
        self.out = nn.Linear(8, 3 if "softmax" in words else 1)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 8)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        y = self.out(h)
        return y.softmax(1) if "softmax" in words else y

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
losses, kept, total = [], [], 0
for i in range(80):
    x = torch.rand(16, 5, 4)
    if "softmax" in words:
        loss = nn.CrossEntropyLoss()(model(x), torch.arange(16) % 3)
    else:
        loss = nn.functional.mse_loss(model(x), x.sum((1, 2)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if "keep" in words:
        losses.append(loss)
        kept.append(torch.ones(100_000))  # 400 KB, for which the heap has no free place
    if "total" in words:
        total = total + loss
print(float(loss.detach()).hex(), float(total if total == 0 else total.detach()))
"""

# What is compiled and scripted, beside what is watched.
ODD = """
import copy, pickle, sys, time
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_num_threads(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.loss = nn.Linear(4, 1), nn.MSELoss()

    def forward(self, x, y):
        return self.loss(self.inner(x), y)

class Scripted(nn.Module):
    def forward(self, x, y):
        return F.mse_loss(x, y) + F.l1_loss(x, y)

net, criterion = Net(), Scripted()
model = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(10):
    x = torch.rand(8, 4)
    y = x.sum(1, keepdim=True)
    if i == 1:
        criterion = torch.jit.script(criterion)
    loss = model(x, y) + criterion(net.inner(x), y)
    slope = torch.func.grad(lambda w: F.mse_loss(x @ w, y))(torch.ones(4, 1))
    optimizer.zero_grad()
    (loss + 0 * slope.sum()).backward(retain_graph=True)
    optimizer.step()
    net = copy.deepcopy(net) if i < 0 else net
    pickle.dumps(net.state_dict())
    torch.compile(lambda z: (time.sleep(0), z * 2)[1], backend="eager")(x)
print(float(loss.detach()).hex())
"""

# What a loop does besides its steps.
CALLS = """
import copy, io, json, logging, os, sys, time
from time import sleep
import numpy as np
import torch
from tensorboardX.writer import SummaryWriter

torch.manual_seed(1)
torch.set_num_threads(1)  # small ones: others work beside this
logging.basicConfig(stream=sys.stdout, level="INFO", format="%(message)s")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
folder = sys.argv[1]

def keep(i):
    torch.save(model.state_dict(), f"{folder}/{i}.pt")
    np.save(f"{folder}/{i}.npy", np.ones(3))
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    assert buffer.getvalue()

sleep(0.01)
copy.deepcopy(model)
writer = SummaryWriter()
for i in range(40):
    x = torch.arange(32.0).reshape(8, 4) / (i + 1)
    loss = ((model(x) - 1) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    keep(i)
    best = copy.deepcopy(model.state_dict())
    logging.info("a step")
    writer.add_scalar("loss", loss, i)
    if i % 2:
        sleep(float(sys.argv[2]))
    with open(f"{folder}/log.txt", "a") as file:
        file.write("x")
    if i == 10 and os.fork() == 0:  # it sleeps, whatever the switches say
        begun = time.monotonic()
        time.sleep(0.1)
        os._exit(time.monotonic() - begun < 0.1)
    assert i != 10 or os.wait()[1] == 0
print(float(loss).hex())
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch") / "train.py"
    path.write_text(TRAIN)
    return path


def numbers(text: str) -> list[str]:
    return [line for line in text.splitlines() if "0x" in line]


def observed(path: Path, words: str = "", switches: Any = None, **more: Any) -> Any:
    """The first steps with their facts, the rest, and what is printed."""
    with Observed(path, switches, words.split(), **more) as script:
        first = script.run(14, facts=True)
        assert not first["ended"], script.output()
        assert first["notes"] == []
        first["ops"] = script.run(2, watch="profile").get("ops", [])
        last = script.end()
        assert len(first["marks"]) == 14 and len(last["marks"]) == STEPS - 16
        first["facts"] = first["facts"]["torch"]
        return first, last, numbers(script.output())


@pytest.fixture(scope="module")
def plain(train: Path) -> Any:
    """What one run without words and switches shows."""
    return observed(train)


def test_steps_waits_facts_and_the_same_numbers(train: Path, plain: Any) -> None:
    first, last, lines = plain
    assert first["kind"] == "optimizer" and first["epochs"] == [0, 6, 12]
    assert all(wait > 0 for wait in first["waits"])
    facts = first["facts"]
    assert facts["parameters"] == 3 * 4 * 9 + 4 + 144 + 1 + 3
    assert facts["model"] == "Sequential" and facts["convolutions"] == 1
    assert facts["layout"] == "contiguous" and facts["batch"] == 16
    assert facts["inputs"] == [{"shape": [16, 3, 8, 8], "dtype": "float32"}]
    assert [one["class"] for one in facts["optimizers"]] == ["Adam", "SGD"]
    assert facts["mkldnn"] and not facts["history"] and facts["lines"] == {}
    wrong = {"broadcast_loss", "double_softmax", "unchanged", "cell_calls_per_step"}
    assert not wrong & set(facts)
    ops = {one["name"]: one for one in first["ops"]}
    assert ops["aten::addmm"]["calls"] == 1 and ops["aten::addmm"]["seconds"] > 0
    (loader,) = facts["loaders"]
    assert loader["workers"] == 0 and loader["dataset"] == "TensorDataset"
    assert lines == numbers(bare(train))
    assert first["losses"][5] == float.fromhex(lines[0].split()[1])
    assert last["loss"] == float.fromhex(lines[-1].split()[1])


def test_switches_that_leave_numbers(train: Path) -> None:
    switches = {
        "no_collect": True,
        "no_anomaly": True,
        "nondeterministic": True,
        "batched_fetch": True,
        "flush_denormals": True,
        "threads": 1,
    }
    first, _, lines = observed(train, "anomaly single", switches)
    assert sorted(first["thrown"]) == sorted(switches)
    assert not first["facts"]["anomaly"] and not first["facts"]["deterministic"]
    assert lines == numbers(bare(train, "single"))
    needless = {"no_anomaly": True, "nondeterministic": True, "float32": True}
    needless |= {"no_compile": True, "no_autocast": True, "persistent_workers": True}
    first, _, lines = observed(train, "single", needless | {"no_print": True})
    assert first["thrown"] == ["no_print"] and lines == []


def test_switches_of_precision_and_kernels(train: Path, plain: Any) -> None:
    usual, _, _ = plain
    first, _, _ = observed(train, "half", {"no_half": True})
    assert first["thrown"] == ["no_half"] and first["facts"]["dtypes"] == ["float32"]
    first, _, _ = observed(train, "double", {"float32": True})
    assert first["thrown"] == ["float32"] and first["facts"]["dtypes"] == ["float32"]
    assert first["losses"] == usual["losses"]
    switches = {"no_autocast": True, "no_compile": True}
    switches |= {"channels_last": True, "fused": True}
    first, _, _ = observed(train, "compile", switches)
    assert sorted(first["thrown"]) == ["channels_last", "fused", "no_compile"]
    assert first["facts"]["layout"] == "channels_last"
    assert first["facts"]["optimizers"][0]["fused"] is True
    assert first["losses"] == pytest.approx(usual["losses"], rel=1e-4)


def test_switches_of_loaders(train: Path, plain: Any) -> None:
    usual, _, lines = plain
    first, _, same = observed(train, "workers", {"workers": 0})
    assert first["thrown"] == ["workers"]
    assert first["facts"]["loaders"][0]["workers"] == 0 and same == lines
    first, _, same = observed(train, "workers", {"persistent_workers": True})
    assert first["thrown"] == ["persistent_workers"] and same == lines
    first, _, _ = observed(train, "", {"cached_batch": True})
    assert first["thrown"] == ["cached_batch"]
    assert max(first["losses"]) < 1e5 < usual["losses"][1]


def observed_wrong(path: Path, words: str, switches: Any = None) -> tuple[Any, Any]:
    """The facts after some steps, and what the script printed."""
    with Observed(path, switches, words.split()) as script:
        script.run(8, facts=True)
        report = script.run(62, facts=True)
        assert len(report["marks"]) == 62 and report["notes"] == []
        script.end()
        return report, numbers(script.output())


def test_a_bias_of_two_classes_changes() -> None:
    before, after = torch.tensor([0.25, -0.25]), torch.tensor([0.5, -0.5])
    assert sums_of(torch, before) != sums_of(torch, after)
    assert sums_of(torch, before) == sums_of(torch, before.clone())


def test_a_rate_is_the_one_at_its_start() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] < 0.1
    assert torch_hooks._optimizer(optimizer)["lr"] == 0.5


def test_what_is_wrong(tmp_path: Path) -> None:
    path = written(tmp_path / "wrong.py", WRONG)
    report, printed = observed_wrong(path, "keep")
    facts = report["facts"]["torch"]
    lines = WRONG.splitlines()
    assert facts["broadcast_loss"] == [[16, 1], [16]]
    assert "mse_loss" in lines[facts["lines"]["broadcast_loss"] - 1]
    assert facts["unchanged"] == ["unused.weight", "unused.bias"]
    assert facts["history"] and facts["cell_calls_per_step"] == 5
    assert facts["rss_slope_bytes"] > 1000 and "double_softmax" not in facts
    assert printed == numbers(bare(path, "keep"))
    report, _ = observed_wrong(path, "softmax total")
    facts = report["facts"]["torch"]
    assert facts["double_softmax"] is True and facts["history"]
    assert "CrossEntropy" in lines[facts["lines"]["double_softmax"] - 1]
    switches = {"free_graph": True, "mkldnn": True, "fused": True}
    report, _ = observed_wrong(path, "slow keep total", switches)
    assert sorted(report["thrown"]) == sorted(switches)
    facts = report["facts"]["torch"]
    assert facts["mkldnn"] and not facts["history"]
    assert facts["optimizers"][0]["fused"] is True
    report, _ = observed_wrong(path, "softmax", {"mkldnn": True, "float32": True})
    facts = report["facts"]["torch"]
    assert report["thrown"] == [] and not facts["history"]


def test_what_is_compiled_and_scripted(tmp_path: Path) -> None:
    path = written(tmp_path / "odd.py", ODD)
    plain = numbers(bare(path))
    for switches in ({}, {"free_graph": True, "no_save": True, "no_sleep": True}):
        with Observed(path, switches) as script:
            report = script.run(8, facts=True)
            last = script.end()
            assert "error" not in last and report["notes"] == []
            assert numbers(script.output()) == plain
        assert "torch.save" not in report["facts"]["torch"]["calls_per_step"]
        assert not report["facts"]["torch"]["history"]
        assert "free_graph" not in report["thrown"]  # it asked to keep the graph


def test_calls_that_no_step_needs(tmp_path: Path) -> None:
    path = written(tmp_path / "calls.py", CALLS)
    package = tmp_path / "tensorboardX"  # of which the environment has none
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "writer.py").write_text(
        "class SummaryWriter:\n"
        "    def add_scalar(self, name, value, step):\n"
        "        print('one told')\n"
    )
    expected = {"copy.deepcopy": 1, "logging": 1, "numpy.save": 1, "open": 1}
    expected |= {"time.sleep": 0.5, "torch.save": 2, "SummaryWriter.add_scalar": 1}
    lines = {
        word: next(i for i, line in enumerate(CALLS.splitlines(), 1) if text in line)
        for word, text in {
            "copy.deepcopy": "best =",
            "logging": "logging.info",
            "numpy.save": "np.save",
            "open": "with open",
            "time.sleep": "sleep(float",
            "torch.save": "torch.save",
            "SummaryWriter.add_scalar": "writer.add_scalar",
        }.items()
    }
    for switches in ({}, {"no_save": True, "no_log": True, "no_sleep": True}):
        folder = tmp_path / f"files{len(switches)}"
        folder.mkdir()
        slept = "1e6" if switches else "0.01"
        with Observed(path, switches, [str(folder), slept]) as script:
            script.run(20)
            second = script.run(20, facts=True)
            script.end()
            printed = script.output()
        facts = second["facts"]["torch"]
        assert facts["calls_per_step"] == expected and facts["lines"] == lines
        first = next(n for f, n in second["files"].items() if f.endswith("/writer.py"))
        assert first % 100_000 == 0 and first > max(lines.values())
        assert str(path) not in second["files"], "its lines count from 0"
        assert sorted(second["thrown"]) == sorted(switches)
        kept = sorted(each.name for each in folder.iterdir())
        if switches:
            assert kept == ["0.npy", "0.pt", "log.txt"] and "a step" not in printed
            assert "one told" not in printed
        else:
            assert len(kept) == 81 and printed.count("a step") == 40
            assert second["ns"] > 10 * 10e6
    (tmp_path / "bare").mkdir()
    assert numbers(printed) == numbers(bare(path, str(tmp_path / "bare"), "0"))


# What serves a search for mistakes, or memory, and costs time.
TOOLS = """
import cProfile
import copy
import sys
import tracemalloc
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

words = sys.argv[1:]
torch.manual_seed(1)
if "tracing" in words:
    tracemalloc.start()
    cProfile.Profile().enable()
if "profiler" in words:
    profile = torch.profiler.profile()
    profile.start()
body, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
data = TensorDataset(torch.rand(64, 8), torch.rand(64, 1))
kept = None
for epoch in range(10):
    for x, y in DataLoader(data, batch_size=8):
        x = checkpoint(body, x, use_reentrant=False) if "memory" in words else body(x)
        loss = ((head(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "copies" in words:
            kept = copy.deepcopy(head)
if "profiler" in words:
    profile.stop()
print(0, float(loss).hex(), kept is None, tracemalloc.is_tracing())
"""


LEFT_ON = [
    ("tracing", "no_trace", "tracing"),
    ("profiler", "no_profiler", "profiler"),
    ("memory", "no_checkpoints", "checkpoints_per_step"),
    ("copies", "no_copy", "calls_per_step"),
]


def test_tools_that_are_not_on(tmp_path: Path) -> None:
    path = written(tmp_path / "tools.py", TOOLS)
    with Observed(path, {switch: True for _, switch, _ in LEFT_ON}) as script:
        needless = script.run(20, facts=True)
    silent = needless["facts"]["torch"]
    assert [fact for _, _, fact in LEFT_ON if silent[fact]] == []
    assert needless["thrown"] == []


@pytest.mark.parametrize(("word", "switch", "fact"), LEFT_ON)
def test_tools_that_were_left_on(
    tmp_path: Path, word: str, switch: str, fact: str
) -> None:
    path = written(tmp_path / "tools.py", TOOLS)
    with Observed(path, argv=[word]) as script:
        script.run(10)
        asked = script.run(10, facts=True)["facts"]["torch"]
    with Observed(path, {switch: True}, [word]) as script:
        script.run(10)
        thrown = script.run(10, facts=True)
        last = script.end()
        assert (
            "error" not in last
            and numbers(script.output())[0].split()[1]
            == numbers(bare(path, word))[0].split()[1]
        )
    assert asked[fact] and thrown["thrown"] == [switch]
    if word == "tracing":
        assert asked[fact] == ["tracemalloc", "a profiler"]
    if word == "memory":
        line = next(i for i, x in enumerate(TOOLS.splitlines(), 1) if "(body" in x)
        assert asked["lines"]["checkpoint"] == line and asked[fact] == 1
    if word in ("tracing", "profiler"):
        assert not thrown["facts"]["torch"][fact]


def test_another_batch(tmp_path: Path) -> None:
    path = written(tmp_path / "tools.py", TOOLS)
    with Observed(path, {"batch": {"from": 8, "to": 32}}, alone=True) as script:
        last = script.run(1 << 50, facts=True)
    assert last["thrown"] == ["batch"] and len(last["marks"]) == 20
    assert last["facts"]["torch"]["batch"] == 32
    with Observed(path, {"batch": {"from": 16, "to": 32}}) as script:
        assert script.end()["thrown"] == []


def test_lines_and_calls_of_hooks(tmp_path: Path) -> None:
    text = TOOLS.replace("        optimizer.step()", "        optimizer.step(); busy()")
    text = text.replace(
        "words =", "def busy():\n    sum(range(2_000_000))\n\n\nwords =", 1
    ).replace("range(10)", "range(100)")
    path = written(tmp_path / "busy.py", text)
    with Observed(path) as script:
        script.run(5)
        lines = script.run(40, watch="lines")["lines"]
        hooks = script.run(20, watch="hooks")["hooks"]
        after = script.run(20)
    place = {"function": "busy"}
    place |= {"line": text.splitlines().index("    sum(range(2_000_000))") + 1}
    assert {key: lines[0][key] for key in place} == place
    assert 0.5 < lines[0]["share"] <= 1
    assert 3 < hooks["calls_per_step"] < 30
    assert 1e-7 < hooks["seconds_per_call"] < 1
    assert "lines" not in after and "hooks" not in after


PHASES = """
import multiprocessing, os
import torch

def act(model):
    for t in range(30):
        with torch.no_grad():
            model(torch.ones(64, 64))

def train(model, optimizer):
    for k in range(2):
        loss = (model(torch.ones(64, 64)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def turn(parent):
    while os.getppid() == parent:  # which is killed
        sum(range(10_000))

torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
two = multiprocessing.get_context("fork")
others = [two.Process(target=turn, args=(os.getpid(),)) for _ in range(2)]
for other in others:
    other.start()
for episode in range(10_000):
    act(model)
    train(model, optimizer)
"""


@full_tier
def test_loops_with_books_of_their_own_and_processes(tmp_path: Path) -> None:
    path = written(tmp_path / "phases.py", PHASES)
    lines = PHASES.splitlines()
    acts = lines.index("    for t in range(30):") + 1
    trains = lines.index("    for k in range(2):") + 1
    with Observed(path, alone=True) as script:
        script.run(5)
        seen = script.run(100_000, seconds=2, watch="lines")
    books = {one["line"]: one["accounts"] for one in seen["books"]}
    assert set(books) == {acts, trains}, "the loop around them consists of them"
    assert "backward" not in books[acts]
    assert sum(books[acts].values()) > sum(books[trains].values())
    assert seen["children"]["processes"] == 2
    assert 0 < seen["children"]["running"] <= 2


# What is printed is formatted within guards of PyTorch that live in frames' locals.
PRINTS = """
import gc
import torch

class Knot:
    def __init__(self):
        self.own = self  # for the garbage collector

model = torch.nn.Linear(40, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
gc.set_threshold(50, 5, 5)
for i in range(1_000_000):
    scores = model(torch.ones(8, 40))
    loss = (scores ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    text = str(scores) + str(model.bias)
    knots = [Knot() for _ in range(20)]
"""


@full_tier
def test_looks_at_a_stack_leave_its_frames_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "prints.py", PRINTS)
    with Observed(path, alone=True) as script:
        script.run(2, watch="lines")
        seen = script.run(1_000_000, seconds=3, watch="lines")
        assert not seen["ended"], seen["error"]
        assert "optimizer" in seen["accounts"]


@full_tier  # every day one that was left on (LEFT_ON)
def test_a_profiler_of_its_own_stays(tmp_path: Path) -> None:
    path = tmp_path / "profiled.py"
    start = "profiler = torch.profiler.profile(schedule=lambda step: 0)"
    path.write_text(TOOLS.replace("torch.manual_seed", start + "; torch.manual_seed"))
    with Observed(path, alone=True) as script:
        script.run(2)
        assert "ops" not in script.run(2, watch="profile")


def test_what_lies_within_counts_once() -> None:
    events = [(0, 10, "a"), (1, 4, "b"), (2, 3, "a"), (5, 9, "b"), (12, 13, "a")]
    times = {name: (round(1e9 * s), n) for name, (s, n) in self_times(events).items()}
    assert times == {"a": (10 - 3 - 4 + 1 + 1, 3), "b": (2 + 4, 2)}


def test_a_notebook_that_was_exported(tmp_path: Path) -> None:
    path = written(
        tmp_path / "notebook.py",
        "# In[1]:\nget_ipython().run_line_magic('matplotlib', 'inline')\n"
        "get_ipython().system('touch made.txt')\n" + TOOLS,
    )
    with Observed(path, folder=tmp_path, notebook=True) as script:
        assert "error" not in script.end()
    assert not (tmp_path / "made.txt").exists()
    with Observed(path, folder=tmp_path) as script:
        assert "get_ipython" in script.end()["error"]


LISTS = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
rows = [np.full(3, i, np.float32) for i in range(64)]
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(12):
    begin = step % 4 * 16
    x = torch.tensor(np.array(rows[begin : begin + 16]))
    rate = torch.tensor([0.1, 0.2])
    loss = model(x).square().mean() * rate.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_arrays_of_lists_are_the_first_ones_again(tmp_path: Path) -> None:
    path = written(tmp_path / "lists.py", LISTS)
    with Observed(path) as script:
        plain = script.end()
    with Observed(path, {"cached_conversion": True}) as script:
        cached = script.end()
    assert plain["thrown"] == [] and cached["thrown"] == ["cached_conversion"]
    assert plain["losses"][0] == cached["losses"][0]
    assert plain["losses"][1] != pytest.approx(plain["losses"][0], rel=0.1)
    assert cached["losses"][1] == pytest.approx(cached["losses"][0], rel=0.1)


RECURRENT = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
first = "first" in sys.argv
layer = nn.LSTM(4, 8, batch_first=first)
head = nn.Linear(8, 1)
model = nn.ModuleList([layer, head])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
shape = (5, 16, 4) if "time" in sys.argv else (16, 5, 4)
for step in range(12):
    out, _ = layer(torch.randn(shape))
    last = out[-1] if "time" in sys.argv else out[:, -1]
    loss = nn.functional.mse_loss(head(last), torch.randn(16, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("word", "seen"),
    [("", True), ("first", False), pytest.param("time", False, marks=full_tier)],
)
def test_a_batch_that_is_taken_for_time(tmp_path: Path, word: str, seen: bool) -> None:
    path = written(tmp_path / "recurrent.py", RECURRENT)
    with Observed(path, argv=[word]) as script:
        facts = script.run(8, facts=True)["facts"]["torch"]
    assert ("batch_as_time" in facts) == seen
    if seen:
        assert facts["batch_as_time"] == ["LSTM", [16, 5, 4]]


def test_half_precision_where_the_script_asks_for_none(train: Path, plain: Any) -> None:
    usual, _, _ = plain
    half, _, _ = observed(train, "", {"autocast": "bfloat16"})
    assert half["thrown"] == ["autocast"]
    assert half["losses"] != usual["losses"]
    assert half["losses"] == pytest.approx(usual["losses"], rel=0.1)


ANEW = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(64, 4), torch.randn(64, 1)
for fold in range(4):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(64):
        if "steps" in sys.argv:
            optimizer = torch.optim.Adam(model.parameters())
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("word", ["folds", "steps"])
def test_optimizers_that_are_made_anew(tmp_path: Path, word: str) -> None:
    path = written(tmp_path / "anew.py", ANEW)
    with Observed(path, argv=[word]) as script:
        assert len(script.run(60, facts=True)["marks"]) == 60
        later = script.run(100, facts=True)  # of two models
        rest = script.end()
    assert len(later["marks"]) == 100
    assert 0 < len(rest["marks"]) <= 256 - 160
    assert later["facts"]["torch"]["parameters"] <= 10
    assert len(later["facts"]["torch"]["optimizers"]) <= 2


# A policy that acts on single states, learns from batches that are lists of arrays, and
# passes that keep their graph.
POLICY = """
import sys
import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
words = sys.argv[1:]
model = nn.GRU(4, 64, batch_first=True) if "graph" in words else nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
rows = [np.full(4, i, "float32") for i in range(32)]
for step in range(8 if "graph" in words else 60):
    if "graph" in words:
        h = torch.zeros(1, 8, 64)
        for k in range(30):
            out, h = model(torch.ones(8, 5, 4), h)
            out.mean().backward(retain_graph=True)
    else:
        model(torch.ones(1, 4))
        x = torch.tensor(rows)
        y = torch.tensor([float(i) for i in range(32)])
        (model(x).sum(1) - y).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(sum(float(p.detach().sum()) for p in model.parameters()).hex())
"""


def test_what_lines_are_given_and_the_largest_call(tmp_path: Path) -> None:
    script = written(tmp_path / "policy.py", POLICY)
    plain = bare(script)
    with Observed(script) as seen:
        seen.run(5, facts=True)
        assert seen.run(20, facts=True)["facts"]["torch"]["batch"] == 32
        found = seen.run(10, watch="hooks")["conversions"]
        lines = {one["line"]: one for one in found}
        source = POLICY.splitlines()
        arrays = lines[source.index("        x = torch.tensor(rows)") + 1]
        assert arrays["given"] == "a list of 32 arrays of 4 float32"
        assert arrays["arrays"] and arrays["calls"] >= 10
        numbers = [one["given"] for one in found if not one["arrays"]]
        assert numbers == ["a list of 32 floats"]
        seen.end()
        assert seen.output().splitlines()[-1] == plain.splitlines()[-1] != "nan"
    with Observed(script, {"stacked_arrays": True}) as seen:
        assert seen.end()["thrown"] == ["stacked_arrays"]
        same = seen.output().splitlines()[-1] == plain.splitlines()[-1]
        assert same, "bit for bit"


def test_passes_whose_graph_grows(tmp_path: Path) -> None:
    script = written(tmp_path / "policy.py", POLICY)
    with Observed(script, argv=["graph"]) as seen:
        trend = seen.run(6, facts=True)["facts"]["torch"]["backward_trend"]
    assert trend["passes"] == 30 and trend["retains"]
    assert trend["last_s"] > 2 * trend["first_s"]
    assert "retain_graph" in POLICY.splitlines()[trend["line"] - 1]


CALLED = """
import sys
import torch

words = sys.argv[1:]
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
if "train" in words:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
if "compile" in words:
    model = torch.compile(model, backend="eager")
total = 0.0
for _ in range(200):
    total += float(model(torch.ones(8, 4)).sum().detach())
if "train" in words:
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.ones(16, 4)).sum().backward()
        optimizer.step()
print(total.hex())
"""


@pytest.mark.parametrize("word", ["plain", "compile", "train"])
def test_calls_of_a_model_that_nothing_trains(tmp_path: Path, word: str) -> None:
    script = written(tmp_path / "calls.py", CALLED)
    plain = bare(script, word)
    with Observed(script, argv=[word]) as seen:
        first = seen.run(5, facts=True)
        assert first["notes"] == [] and first["facts"], str(first)[:600]
        facts = first["facts"]["torch"]
        if word == "train":
            assert first["kind"] == "optimizer" and len(first["marks"]) == 5
        else:
            assert first["kind"] == "call" and 16 <= len(first["marks"]) <= 64
            assert facts["batch"] == 8 and facts["parameters"] == 25
            assert facts["graphs_of_calls"] == 1
        seen.end()
        assert seen.output() == plain
    if word == "plain":
        with Observed(script, {"no_grad": True}) as seen:
            assert seen.end()["thrown"] == ["no_grad"]
            assert seen.output() == plain


TABLES = """
import sys
import torch

torch.manual_seed(1)
torch.set_num_threads(1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(250_000, 4)
        self.turn = 0

    def forward(self, rows):
        self.turn += 1
        return (self.table(rows) * self.turn).sum()

model = Net()
called = torch.compile(model, backend="eager") if "compile" in sys.argv else model
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
for step in range(40):
    optimizer.zero_grad()
    called(torch.arange(8) + step).backward()
    optimizer.step()
"""


def test_a_large_table_and_why_code_is_compiled_again(tmp_path: Path) -> None:
    script = written(tmp_path / "tables.py", TABLES)
    with Observed(script, argv=["compile"]) as seen:
        facts = seen.run(20, facts=True)["facts"]["torch"]
    table = facts["dense_embedding"]
    assert table == {"rows": 250_000, "used": 8, "numbers": 1_000_000}
    assert facts["optimizer_s"] > 0
    assert any("turn" in reason for reason in facts["recompiles"]["forward"])


LOOPS = """
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
cell = torch.nn.GRUCell(4, 32)
optimizer = torch.optim.SGD(cell.parameters(), lr=1e-3)

def forward(x):
    h = torch.zeros(8, 32)
    for t in range(24):
        h = cell(x[t], h)
    return h

total = 0.0
for step in range(200):
    x = torch.stack([torch.full((8, 4), 0.1 * k) for k in range(24)])
    loss = forward(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += float(loss.detach())
print(total.hex())
"""


def test_rounds_of_loops_in_a_step(tmp_path: Path) -> None:
    script = written(tmp_path / "loops.py", LOOPS)
    plain = bare(script)
    with Observed(script) as seen:
        start = seen.run(3, watch="lines")
        assert start["lines"] and start["loops"] == [], "nothing was counted yet"
        seen.run(1, watch="rounds")
        loops = seen.run(60, watch="lines")["loops"]
        seen.end()
        assert seen.output() == plain, "bit for bit"
    source = LOOPS.splitlines()
    lines = {one["line"]: one for one in loops}
    loop = lines[source.index("    for t in range(24):") + 1]
    assert 24 <= loop["rounds"] <= 25 and 0.1 < loop["share"] < 0.9
    assert source.index("for step in range(200):") + 1 not in lines


@full_tier
def test_a_tracer_of_the_scripts_own_stays(tmp_path: Path) -> None:
    script = tmp_path / "loops.py"
    own = "import sys\nsys.settrace(lambda *args: None)\n"
    script.write_text(own + LOOPS.replace("print(", "print(sys.gettrace() is None, "))
    plain = bare(script)
    with Observed(script) as seen:
        seen.run(3)
        seen.run(1, watch="rounds")
        seen.run(5, watch="lines")
        seen.end()
        assert seen.output() == plain


UNUSED = """
import sys
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
maker, critic = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
first = torch.optim.SGD(critic.parameters(), lr=1e-3)
second = torch.optim.SGD(maker.parameters(), lr=1e-3)
for step in range(60):
    for _ in range(3):
        made = maker(torch.ones(8, 4))
        if "detach" in sys.argv:
            made = made.detach()
        first.zero_grad()
        critic(made).sum().backward()
        first.step()
    second.zero_grad()
    critic(maker(torch.ones(8, 4))).sum().backward()
    second.step()
print(sum(float(p.detach().sum()) for p in maker.parameters()).hex())
"""


@pytest.mark.parametrize("word", ["", "detach"])
def test_gradients_that_nothing_uses(tmp_path: Path, word: str) -> None:
    script = written(tmp_path / "unused.py", UNUSED)
    plain = bare(script, word)
    with Observed(script, argv=[word]) as seen:
        facts = seen.run(20, facts=True)["facts"]["torch"]
        seen.end()
        assert seen.output() == plain, "bit for bit"
    # Without detach, the critic's passes reach the maker, too; and its own the critic.
    assert "untrained" not in facts, "both have an optimizer"
    line = UNUSED.splitlines().index("    second.zero_grad()") + 1
    unused = facts["unused_gradients"]
    if word:
        assert unused["passes"] < 0.4 and unused["line"] != line
    else:
        assert unused["passes"] > 1 and unused["line"] == line


GENERATES = """
import sys
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
with torch.no_grad():
    for prompt in range(4):
        tokens = torch.ones(4, 64)
        for t in range(60):
            made = model(tokens if "all" in sys.argv else tokens[-1:])
            tokens = torch.cat([tokens, made[-1:]])
print(float(tokens.sum()).hex())
"""


@pytest.mark.parametrize("word", ["all", "new"])
def test_inputs_that_grow_from_call_to_call(tmp_path: Path, word: str) -> None:
    script = written(tmp_path / "generates.py", GENERATES)
    plain = bare(script, word)
    with Observed(script, argv=[word]) as seen:
        seen.run(5)
        seen.run(1, watch="rounds")
        facts = seen.run(40, facts=True, watch="lines")
        seen.end()
        assert seen.output() == plain, "bit for bit"
    assert facts["loops"] == [], "a call is one round of its loop"
    found = facts["facts"]["torch"].get("growing_input", {})
    if word == "all":
        assert found["least"] == 4 * 64 and found["most"] == 63 * 64
    else:
        assert found == {}


FROZEN = """
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
below, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
for step in range(40):
    optimizer.zero_grad()
    head(below(torch.ones(8, 4))).sum().backward()
    optimizer.step()
"""


def test_parameters_that_nothing_trains(tmp_path: Path) -> None:
    script = written(tmp_path / "frozen.py", FROZEN)
    with Observed(script) as seen:
        facts = seen.run(10, facts=True)["facts"]["torch"]
    assert facts["untrained"] == {"tensors": 2, "numbers": 20}


BY_HAND = """
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
for step in range(600):
    model(torch.ones(8, 4)).sum().backward()
    with torch.no_grad():
        for p in model[1].parameters():
            p -= 1e-3 * p.grad
            p.grad = None
"""


def test_parameters_that_no_line_changes(tmp_path: Path) -> None:
    script = written(tmp_path / "by_hand.py", BY_HAND)
    with Observed(script) as seen:
        facts = [seen.run(10, facts=True)["facts"]["torch"] for _ in range(2)]
    assert "untrained" not in facts[0], "it may be trained yet"
    assert facts[1]["untrained"] == {"tensors": 2, "numbers": 20}


AGAIN = """
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
table = torch.nn.Embedding(100, 8, padding_idx=0)
optimizer = torch.optim.SGD(table.parameters(), lr=1e-3)

def window(size):
    return torch.tensor([float(k) for k in range(size)])

def noise(size):
    return torch.rand(size)

for step in range(60):
    rows = torch.zeros(4, 40, dtype=torch.long)
    rows[:, :10] = torch.randint(1, 100, (4, 10))
    loss = (table(rows) * window(8) * noise(8)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(float(table.weight.detach().sum()).hex())
"""


def test_functions_that_make_the_same_again(tmp_path: Path) -> None:
    script = written(tmp_path / "again.py", AGAIN)
    plain = bare(script)
    with Observed(script) as seen:
        seen.run(3)
        seen.run(2, watch="rounds")
        found = seen.run(30, facts=True, watch="lines")
        seen.end()
        assert seen.output() == plain, "bit for bit"
    constants = [one["function"] for one in found["constants"]]
    assert constants == ["window"], "noise is another each time"
    assert found["constants"][0]["calls"] == 2
    assert found["facts"]["torch"]["padding"] == 0.75


EPOCHS = """
import sys
import torch
from torch.utils.data import DataLoader

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.full((4,), 0.1 * i + (100 if sys.gettrace() else 0))

if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    called = torch.compile(model, backend="eager") if "compile" in sys.argv else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(12):
        for x in DataLoader(Rows(), batch_size=8, num_workers=1):
            optimizer.zero_grad()
            called(x).pow(2).mean().backward()
            optimizer.step()
    print(float(model.weight.detach().sum()).hex())
"""


@full_tier
@pytest.mark.parametrize("word", ["compile", pytest.param("", marks=full_tier)])
def test_a_trace_stays_out_of_workers_and_graphs(tmp_path: Path, word: str) -> None:
    script = written(tmp_path / "epochs.py", EPOCHS)
    plain = bare(script, word)
    with Observed(script, argv=[word]) as seen:
        seen.run(3, facts=True)
        before = seen.run(2, watch="rounds")  # workers of an epoch start in them
        facts = seen.run(9, facts=True, watch="lines")["facts"]["torch"]
        seen.end()
        assert seen.output().splitlines()[-1] == plain.splitlines()[-1]
    assert len(before["marks"]) == 2
    assert facts["graphs"] == (1 if word else 0)


MAPPED = """
import torch

model = torch.nn.Linear(4, 1)
weights = dict(model.named_parameters())

def score(x):
    return torch.func.functional_call(model, weights, (x.unsqueeze(0),)).sum()

for step in range(80):
    torch.func.vmap(torch.func.grad(score))(torch.ones(32, 4))
"""


def test_samples_of_a_call_that_is_mapped(tmp_path: Path) -> None:
    script = written(tmp_path / "mapped.py", MAPPED)
    with Observed(script) as seen:
        facts = seen.run(5, facts=True)["facts"]["torch"]
    assert facts["batch"] == 32


PACKED = """
import torch
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(1)
torch.set_num_threads(1)
layer = torch.nn.LSTM(4, 8)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
for step in range(40):
    optimizer.zero_grad()
    rows = pack_padded_sequence(torch.ones(6, 3, 4), [6, 4, 2])
    layer(rows)[0].data.pow(2).mean().backward()
    optimizer.step()
print(float(layer.weight_ih_l0.detach().sum()).hex())
"""


def test_sequences_that_are_packed(tmp_path: Path) -> None:
    script = written(tmp_path / "packed.py", PACKED)
    plain = bare(script)
    with Observed(script) as seen:
        seen.run(5, facts=True)
        assert "error" not in seen.end()
        assert seen.output() == plain


ENDS = """
import time
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
since = time.monotonic()
while torch.autograd._profiler_enabled() and time.monotonic() < since + 60:
    torch.ones(2) + 1
    time.sleep(0.001)
print("over", torch.autograd._profiler_enabled())
"""


def test_a_profile_whose_steps_do_not_come_is_dropped(tmp_path: Path) -> None:
    path = written(tmp_path / "ends.py", ENDS)
    with Observed(path) as script:
        script.run(5)
        last = script.run(2, watch="profile")
        assert last["ended"] and len(last["marks"]) == 1 and "ops" not in last
        assert "error" not in last and "over False" in script.output()
