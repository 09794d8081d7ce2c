"""Emitted CUDA graphs, on a CPU by `fake_cuda`; no GPU computes anything here."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import fake_cuda  # noqa: E402
from tiers import full_tier  # noqa: E402

from bakeoff_runner.adapter import (  # noqa: E402
    AdapterError,
    BuildRequest,
    ParityRequest,
)
from bakeoff_runner.adapters.torch_adapter import TorchAdapter  # noqa: E402
from bakeoff_runner.script import load_script  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "torch"
EXECUTED = ["cuda_graphs_sgd.py", "cuda_graphs_rmsprop_inside.py"]
WARM_UP = 3


def on_cpu(name: str) -> str:
    text = (GOLDEN / name).read_text()
    assert text.count('device = "cuda"\n') == 1
    text = text.replace('device = "cuda"\n', 'device = "cpu"\n')
    return text.replace("BATCH_SIZE = 256\n", "BATCH_SIZE = 16\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(3)
    data = {
        "x": generator.integers(0, 256, (48, 1, 28, 28)).astype(np.uint8),
        "y": generator.integers(0, 10, 48).astype(np.int32),
    }
    write_safetensors(tmp_path / "data.safetensors", data)
    (tmp_path / "net.py").write_text(on_cpu(EXECUTED[0]))
    script = load_script(tmp_path / "net.py")
    torch.manual_seed(5)
    weights = {n: p.detach().numpy() for n, p in script.MnistCnn().named_parameters()}
    write_safetensors(tmp_path / "weights.safetensors", weights)
    return tmp_path


def built(folder: Path, text: str) -> TorchAdapter:
    adapter = TorchAdapter()
    adapter.import_framework({}, 1)
    (folder / "net.py").write_text(text)
    adapter.build(
        BuildRequest(
            script=folder / "net.py",
            weights=folder / "weights.safetensors",
            data=folder / "data.safetensors",
            layout=None,
        )
    )
    return adapter


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    "name", [EXECUTED[0], pytest.param(EXECUTED[1], marks=full_tier)]
)
def test_a_replayed_graph_trains_as_the_step_does(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cuda.install(monkeypatch)
    text = on_cpu(name)
    plain = built(folder, replaced(text, "class GraphedStep:", "class Unused:"))
    wanted = plain.losses(8).losses
    plain.run(4, lambda: None)
    after = plain.state()
    assert not fake_cuda.Graph.made
    graphed = built(folder, text)
    for again in range(2):  # a reset captures anew, for its new optimizer
        assert graphed.losses(8).losses == pytest.approx(wanted, rel=1e-6)
        (graph,) = fake_cuda.Graph.made[again:]
        assert graph.replays == 8 - WARM_UP
    result = graphed.run(4, lambda: None)
    assert graph.replays == 12 - WARM_UP
    assert result.loss is not None and np.isfinite(result.loss)
    for parameter, value in graphed.state().items():
        np.testing.assert_allclose(value, after[parameter], rtol=1e-5, atol=1e-7)


def test_nothing_of_the_adapters_own_outlives_a_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has a history keeps the nodes that add up gradients, and these the stream
    on which they were made: a capture on another stream was invalid on a GPU.
    """
    fake_cuda.install(monkeypatch)
    gc.collect()
    before = {id(o) for o in gc.get_objects() if issubclass(type(o), torch.Tensor)}
    adapter = built(folder, on_cpu(EXECUTED[0]))
    adapter.parity(ParityRequest(0, 16, None))
    adapter.losses(2)
    made = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    kept = [t for t in made if id(t) not in before and t.grad_fn is not None]
    assert [tuple(t.shape) for t in kept] == []


def test_a_batch_that_is_not_copied_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake's own proof: it replays on what lies in the static inputs."""
    fake_cuda.install(monkeypatch)
    text = on_cpu(EXECUTED[0])
    right = built(folder, text).losses(8).losses
    stale = replaced(text, "            static.copy_(tensor)\n", "            pass\n")
    wrong = built(folder, stale).losses(8).losses
    assert wrong[: WARM_UP + 1] == right[: WARM_UP + 1]
    assert wrong[WARM_UP + 1] != right[WARM_UP + 1]


def test_the_script_runs_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_cuda.install(monkeypatch)
    text = replaced(on_cpu(EXECUTED[0]), "LEARNING_RATE = 0.1", "LEARNING_RATE = 0.01")
    (folder / "net.py").write_text(text)
    script = load_script(folder / "net.py")
    monkeypatch.setattr("sys.argv", ["net.py", "--steps", "31"])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    losses = [float(line.split()[-1]) for line in lines]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert fake_cuda.Graph.made[0].replays == 31 - WARM_UP


@pytest.mark.parametrize(
    "name", sorted(path.name for path in GOLDEN.glob("cuda_graphs_*.py"))
)
def test_its_optimizer_can_be_captured(name: str, tmp_path: Path) -> None:
    text = on_cpu(name)
    (tmp_path / "net.py").write_text(text)
    script: Any = load_script(tmp_path / "net.py")
    optimizer = script.make_optimizer(script.make_model())
    (group,) = optimizer.param_groups
    assert group.get("capturable", True)
    assert ("capturable=True" in text) == ("capturable" in group)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("compile", "cuda_graphs"),
        ("cuda_allocator", "expandable_segments"),
        ("cuda_allocator", "async"),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_what_needs_a_gpu_says_so(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    with pytest.raises(AdapterError, match=f'^{option} = "{value}" needs a GPU, and'):
        TorchAdapter().import_framework({option: value}, 1)
