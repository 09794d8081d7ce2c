"""The torch adapter and the scripts of the torch emitter (tests/golden/torch).

Everything is executed: through a real worker where the protocol matters, in this
process where many numbers do. Needs an interpreter with torch.
"""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import forks  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from supervisor import WorkerProcess  # noqa: E402
from tiers import full_tier  # noqa: E402

from bakeoff_runner.adapter import (  # noqa: E402
    AdapterError,
    BuildRequest,
    ParityRequest,
)
from bakeoff_runner.adapters.torch_adapter import TorchAdapter  # noqa: E402
from bakeoff_runner.script import load_script, unload_script  # noqa: E402
from bakeoff_runner.tensors import (  # noqa: E402
    read_safetensors,
    write_safetensors,
)

RUNNERS = Path(__file__).resolve().parents[1]
GOLDEN = RUNNERS.parent / "tests" / "golden" / "torch"
BATCH, ROWS = 32, 128  # of the CNN


class Torch(WorkerProcess):
    """Whose answers must be good."""

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        answer = super().ask(op, **fields)
        assert answer["ok"], answer.get("traceback")
        return answer


@pytest.fixture
def worker() -> Iterator[Torch]:
    with Torch("torch") as process:
        yield process
        process.ask("close")
        assert process.process.wait() == 0


def shapes_of(name: str) -> dict[str, tuple[int, ...]]:
    """Canonical parameters of a golden script, in its model's own order."""
    module = load_script(GOLDEN / name)
    state = module.make_model().state_dict()
    unload_script(module)
    return {
        key: tuple(tensor.shape)
        for key, tensor in state.items()
        if not key.endswith("num_batches_tracked")
    }


def write_weights(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    generator = np.random.default_rng(7)
    weights = {}
    for name, shape in shapes.items():
        value = generator.normal(0, 0.1, shape).astype(np.float32)
        if name.endswith(("running_var", "bn1.weight", "bn2.weight", "norm.weight")):
            value = 1 + np.abs(value)
        weights[name] = value
    write_safetensors(path, weights)
    return weights


@pytest.fixture
def mnist(tmp_path: Path) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    data = {
        "x": generator.integers(0, 256, (ROWS, 1, 28, 28)).astype(np.uint8),
        "y": generator.integers(0, 10, ROWS).astype(np.int32),
    }
    write_safetensors(tmp_path / "data.safetensors", data)
    weights = write_weights(tmp_path / "weights.safetensors", shapes_of("mnist_cnn.py"))
    return {"data": data, "weights": weights, "dir": tmp_path}


def cnn_text(name: str = "mnist_cnn.py") -> str:
    """The golden script with a small batch."""
    text = (GOLDEN / name).read_text()
    assert "BATCH_SIZE = 256\n" in text
    return text.replace("BATCH_SIZE = 256\n", f"BATCH_SIZE = {BATCH}\n")


def cnn(mnist: dict[str, Any], name: str = "mnist_cnn.py") -> Path:
    script: Path = mnist["dir"] / name
    script.write_text(cnn_text(name))
    return script


def mnist_loss(p: dict[str, Any], x: Any, y: Any) -> tuple[Any, Any]:
    """The CNN by hand, in whatever dtype it is given."""
    for name in ("conv1", "conv2"):
        x = torch.relu(F.conv2d(x, p[f"{name}.weight"], p[f"{name}.bias"]))
    x = x.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2))
    for name in ("conv3", "conv4"):
        x = torch.relu(F.conv2d(x, p[f"{name}.weight"], p[f"{name}.bias"]))
    x = x.reshape(len(x), -1)
    x = torch.relu(x @ p["fc1.weight"].T + p["fc1.bias"])
    logits = x @ p["fc2.weight"].T + p["fc2.bias"]
    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return -log_p[torch.arange(len(y)), y].mean(), logits


def by_hand(mnist: dict[str, Any], dtype: Any, rows: int) -> dict[str, Any]:
    x = mnist["data"]["x"][:rows].astype(np.float32) / np.float32(255)
    y = torch.from_numpy(mnist["data"]["y"][:rows]).long()
    p = {
        name: torch.from_numpy(value).to(dtype).requires_grad_()
        for name, value in mnist["weights"].items()
    }
    loss, logits = mnist_loss(p, torch.from_numpy(x).to(dtype), y)
    loss.backward()
    tensors = {f"grad/{name}": value.grad.numpy() for name, value in p.items()}
    tensors["loss"] = loss.detach().numpy()
    tensors["output"] = logits.detach().numpy()
    return tensors


def distance(a: Any, b: Any) -> float:
    scale = float(np.linalg.norm(b)) or 1.0
    return float(np.linalg.norm(np.asarray(a, np.float64) - b)) / scale


def build_fields(mnist: dict[str, Any], script: Path) -> dict[str, Any]:
    return {
        "script": str(script),
        "weights": str(mnist["dir"] / "weights.safetensors"),
        "data": str(mnist["dir"] / "data.safetensors"),
    }


@pytest.mark.parametrize("script", ["mnist_cnn.py", "mnist_cnn_as_is.py"])
def test_float64_proof_matches_the_model_by_hand(
    worker: Torch, mnist: dict[str, Any], script: str
) -> None:
    worker.ask("import", threads=1)
    fields = build_fields(mnist, cnn(mnist, script))
    effective = worker.ask("build", dtype="float64", **fields)["effective"]
    assert effective["parameters"] == 563_018
    assert effective["dtype"] == "float64"
    wanted = by_hand(mnist, torch.float64, 64)
    grads = {
        name: np.random.default_rng(5).normal(0, 1, value.shape)
        for name, value in mnist["weights"].items()
    }
    write_safetensors(mnist["dir"] / "grads.safetensors", grads)
    out = mnist["dir"] / "out.safetensors"
    for _ in range(2):  # nothing may be left of the first time
        worker.ask(
            "parity",
            batch=[0, 64],
            out=str(out),
            grads_in=str(mnist["dir"] / "grads.safetensors"),
        )
        got = read_safetensors(out)
        for name, value in wanted.items():
            assert distance(got[name], value) < 1e-12, name
        for name, grad in grads.items():
            rho, eps = (0.9, 1e-7) if script == "mnist_cnn.py" else (0.99, 1e-8)
            step = grad / (np.sqrt((1 - rho) * grad**2) + eps)
            value = mnist["weights"][name].astype(np.float64) - 1e-4 * step
            assert distance(got[f"update/{name}"], value) < 1e-14, name


def test_losses_and_runs_follow_the_steps_by_hand(
    worker: Torch, mnist: dict[str, Any]
) -> None:
    worker.ask("import", threads=1)
    worker.ask("build", **build_fields(mnist, cnn(mnist)))
    first = worker.ask("losses", steps=6)["losses"]
    p = {
        name: torch.from_numpy(value.copy()).requires_grad_()
        for name, value in mnist["weights"].items()
    }
    v = {name: torch.zeros_like(value) for name, value in p.items()}
    x = torch.from_numpy(mnist["data"]["x"].astype(np.float32) / np.float32(255))
    y = torch.from_numpy(mnist["data"]["y"]).long()
    for step, got in enumerate(first):
        rows = slice(step % 4 * BATCH, step % 4 * BATCH + BATCH)  # wraps at 4
        loss, _ = mnist_loss(p, x[rows], y[rows])
        assert got == pytest.approx(loss.item(), rel=1e-5 if step < 2 else 1e-3)
        for name, grad in zip(p, torch.autograd.grad(loss, list(p.values()))):
            v[name] = 0.9 * v[name] + 0.1 * grad**2
            p[name].data -= 1e-4 * grad / (v[name].sqrt() + 1e-7)
    # A run goes on from there; losses starts anew.
    assert worker.ask("run", steps=2)["steps"] == 2
    again = worker.ask("losses", steps=6)["losses"]
    assert again == pytest.approx(first, rel=1e-5)


def test_epsilon_inside_the_root_shows_at_the_second_step(
    worker: Torch, mnist: dict[str, Any]
) -> None:
    text = cnn_text()
    inside = (GOLDEN / "optimizers" / "rmsprop_inside.py").read_text()
    start, end = inside.index("class RMSprop"), inside.index("def make_model")
    text = text.replace("def make_model", inside[start:end] + "def make_model")
    text = text.replace("torch.optim.RMSprop(", "RMSpropEpsInside(")
    mine = mnist["dir"] / "mine.py"
    mine.write_text(text)
    worker.ask("import", threads=1)
    losses = []
    for script in (cnn(mnist), mine):
        worker.ask("build", **build_fields(mnist, script))
        losses.append(worker.ask("losses", steps=2)["losses"])
    assert losses[0][0] == losses[1][0]
    assert abs(losses[0][1] / losses[1][1] - 1) > 1e-3


# In this process from here on.


@pytest.fixture
def adapter() -> Iterator[TorchAdapter]:
    made = TorchAdapter()
    made.import_framework({}, 1)
    yield made
    made.close()
    torch.set_default_dtype(torch.float32)


def request(mnist: dict[str, Any], script: Path, **fields: Any) -> BuildRequest:
    return BuildRequest(
        script=script,
        weights=mnist["dir"] / "weights.safetensors",
        data=mnist["dir"] / "data.safetensors",
        layout=None,
        **{"dtype": "float64", **fields},
    )


LIBRARY = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.shift = torch.nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return {"loss": x.sum(), "logits": self.fc(x).float() + self.shift}

make_model = Net

def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)

def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x)["logits"], y)
    loss.backward()
    optimizer.step()
    return loss
"""


def test_a_model_of_a_library_is_proven(adapter: TorchAdapter, tmp_path: Path) -> None:
    """Its output has names, its code says float32, and the workload's table is no
    parameter of it."""
    script = tmp_path / "library.py"
    script.write_text(LIBRARY)
    stated = '{"inputs": {"x": "f32", "y": "f32"}, "batch": 4, "frozen": ["table"]}'
    script.with_suffix(".contender.json").write_text(stated)
    random = np.random.default_rng(5)
    weights = {"fc.weight": (2, 3), "fc.bias": (2,), "shift": (1, 2), "table": (5,)}
    weights = {name: random.normal(size=shape) for name, shape in weights.items()}
    data = {"x": random.normal(size=(8, 3)), "y": random.normal(size=(8, 2))}
    write_safetensors(tmp_path / "weights.safetensors", weights)
    data = {name: value.astype(np.float32) for name, value in data.items()}
    write_safetensors(tmp_path / "data.safetensors", data)
    adapter.build(request({"dir": tmp_path}, script))
    got = adapter.parity(ParityRequest(0, 8, None))
    wanted = data["x"] @ weights["fc.weight"].T + weights["fc.bias"] + weights["shift"]
    assert distance(got["output"], wanted) < 1e-15
    assert got["grad/shift"].shape == (1, 2)
    assert np.array_equal(got["buffer/table"], weights["table"])
    script.write_text("import no_such_library\n" + LIBRARY)
    with pytest.raises(AdapterError, match=r"library\.py: No module .*environment"):
        adapter.build(request({"dir": tmp_path}, script))
    script.write_text(LIBRARY)
    stated = stated.replace('"table"', "")
    script.with_suffix(".contender.json").write_text(stated)
    with pytest.raises(AdapterError, match=r"library\.py has no 'table'"):
        adapter.build(request({"dir": tmp_path}, script))


LORA = """
import torch

class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        frequency = 1 / torch.tensor([3.0], dtype=torch.float32)
        self.register_buffer("frequency", frequency, persistent=False)
        self.base_layer = torch.nn.Linear(3, 2, bias=False)
        a, b = (torch.nn.Linear(*size, bias=False) for size in ((3, 1), (1, 2)))
        self.lora_A = torch.nn.ModuleDict({"default": a})
        self.lora_B = torch.nn.ModuleDict({"default": b})
        self.base_layer.requires_grad_(False)

    def forward(self, x):
        lora = self.lora_B["default"](self.lora_A["default"](x))
        return self.base_layer(x) * torch.sin(self.frequency) + 2 * lora

def make_model():
    root, inner = torch.nn.Module(), torch.nn.Module()
    root.base_model, inner.q = torch.nn.Module(), Part()
    root.base_model.model = inner
    root.forward = inner.q.forward
    return root

def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)

loss_fn = torch.nn.functional.mse_loss
"""


def test_names_of_peft_and_tables_made_with_the_model(
    adapter: TorchAdapter, tmp_path: Path
) -> None:
    """A frequency that the model computes when it is made is not rounded to float32."""
    script = tmp_path / "lora.py"
    script.write_text(LORA)
    stated = '{"inputs": {"x": "f32", "y": "f32"}, "batch": 4, "frozen": ["q.weight"]}'
    script.with_suffix(".contender.json").write_text(stated)
    random = np.random.default_rng(5)
    shapes = {"q.weight": (2, 3), "q_lora_A.weight": (1, 3), "q_lora_B.weight": (2, 1)}
    weights = {name: random.normal(size=shape) for name, shape in shapes.items()}
    data = {"x": random.normal(size=(8, 3)), "y": random.normal(size=(8, 2))}
    data = {name: value.astype(np.float32) for name, value in data.items()}
    write_safetensors(tmp_path / "weights.safetensors", weights)
    write_safetensors(tmp_path / "data.safetensors", data)
    adapter.build(request({"dir": tmp_path}, script))
    got = adapter.parity(ParityRequest(0, 8, None))
    base, a, b = weights.values()
    wanted = data["x"] @ base.T * np.sin(1 / 3) + 2 * data["x"] @ a.T @ b.T
    assert distance(got["output"], wanted) < 1e-15
    assert got["grad/q_lora_A.weight"].shape == (1, 3)
    assert np.array_equal(got["buffer/q.weight"], base)


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        ("def train_step", r"mine.py defines no train_step\(model, optimizer, "),
        ("def make_model", r"mine.py defines no make_model\(\)"),
        ("def make_optimizer", r"mine.py defines no make_optimizer\(model\)"),
        ("def load_data", r"mine.py defines no load_data\(path\)"),
        ("def batches", r"mine.py defines no batches\(\*tensors\)"),
        ("self.fc2 =", r"the model of mine.py has no 'fc2\.(bias|weight)'"),
    ],
)
def test_a_script_that_lacks_something_is_told_so(
    adapter: TorchAdapter, mnist: dict[str, Any], removed: str, message: str
) -> None:
    text = cnn_text()
    mine = mnist["dir"] / "mine.py"
    mine.write_text(
        text.replace(
            removed,
            removed.replace(" ", " other_", 1)
            if removed.startswith("def")
            else "self.out =",
        )
    )
    with pytest.raises(AdapterError, match=message):
        adapter.build(request(mnist, mine))


def test_other_shapes_and_extra_parameters_are_refused(
    adapter: TorchAdapter, mnist: dict[str, Any]
) -> None:
    text = cnn_text()
    mine = mnist["dir"] / "mine.py"
    mine.write_text(text.replace("nn.Linear(4096, 128)", "nn.Linear(4096, 64)"))
    with pytest.raises(
        AdapterError, match=r"'fc1\.(bias|weight)' of mine.py has shape"
    ):
        adapter.build(request(mnist, mine))
    line = "self.fc2 = nn.Linear(128, 10)\n"
    mine.write_text(text.replace(line, line + "        self.a = nn.Linear(1, 1)\n"))
    with pytest.raises(AdapterError, match=r"has 'a\.weight', the workload has not"):
        adapter.build(request(mnist, mine))


def test_a_frozen_parameter_is_extra_unless_it_is_zero(
    adapter: TorchAdapter, mnist: dict[str, Any]
) -> None:
    text = cnn_text()
    mine = mnist["dir"] / "mine.py"
    line = "self.fc2 = nn.Linear(128, 10)\n"
    frozen = "        self.z = nn.Parameter(torch.{}(3), requires_grad=False)\n"
    mine.write_text(text.replace(line, line + frozen.format("zeros")))
    effective = adapter.build(request(mnist, mine))
    assert effective["parameters"] == 563018
    mine.write_text(text.replace(line, line + frozen.format("ones")))
    with pytest.raises(AdapterError, match="has 'z', the workload has not"):
        adapter.build(request(mnist, mine))


def test_a_frozen_layer_keeps_its_values(
    adapter: TorchAdapter, mnist: dict[str, Any]
) -> None:
    line = "self.fc2 = nn.Linear(128, 10)"
    mine = mnist["dir"] / "mine.py"
    mine.write_text(cnn_text().replace(line, line + ".requires_grad_(False)"))
    effective = adapter.build(request(mnist, mine))
    assert effective["parameters"] == 563018 - 1290
    grads = {name: np.ones_like(value) for name, value in mnist["weights"].items()}
    path = mnist["dir"] / "grads.safetensors"
    kept = {name: grads[name] for name in grads if not name.startswith("fc2.")}
    write_safetensors(path, kept)
    got = adapter.parity(ParityRequest(0, 8, str(path)))
    for name in ("fc2.weight", "fc2.bias"):
        value = mnist["weights"][name]
        assert np.array_equal(got[f"buffer/{name}"], value)
        assert np.array_equal(got[f"update/{name}"], value)
    assert not np.array_equal(got["update/fc1.bias"], mnist["weights"]["fc1.bias"])
    # One that the recipe trains has a gradient, of zeros: that is what the gate sees.
    assert not got["grad/fc2.weight"].any()


def test_what_a_script_stores_in_half_precision_stays_so(
    adapter: TorchAdapter, mnist: dict[str, Any]
) -> None:
    line = "self.fc2 = nn.Linear(128, 10)"
    text = cnn_text("precision_bfloat16.py")
    assert line in text
    mine = mnist["dir"] / "mine.py"
    stored = line[:-1] + ", dtype=torch.bfloat16).requires_grad_(False)"
    mine.write_text(text.replace(line, stored))
    adapter.build(request(mnist, mine, dtype="float32"))
    got = adapter.parity(ParityRequest(0, 8, None))["buffer/fc2.weight"]
    wanted = torch.from_numpy(mnist["weights"]["fc2.weight"]).bfloat16().float()
    assert np.array_equal(got, wanted.numpy())


def test_gradients_without_an_optimizer(
    adapter: TorchAdapter, mnist: dict[str, Any]
) -> None:
    adapter.build(request(mnist, cnn(mnist), train=False))
    got = adapter.parity(ParityRequest(0, 8, None))
    wanted = by_hand(mnist, torch.float64, 8)
    assert distance(got["grad/conv1.weight"], wanted["grad/conv1.weight"]) < 1e-12
    assert not any(name.startswith("update/") for name in got)


def test_batch_norm_buffers_are_unbiased_and_restored(
    adapter: TorchAdapter, tmp_path: Path
) -> None:
    weights = write_weights(tmp_path / "weights.safetensors", shapes_of("mlp_deep.py"))
    generator = np.random.default_rng(1)
    x = generator.normal(0, 1, (40, 100)).astype(np.float32)
    data = {"x": x, "y": generator.integers(0, 10, 40).astype(np.int32)}
    write_safetensors(tmp_path / "data.safetensors", data)
    files = {"dir": tmp_path}
    adapter.build(request(files, GOLDEN / "mlp_deep.py", dropout=False))
    got = adapter.parity(ParityRequest(8, 32, None))
    h = x[8:].astype(np.float64) @ weights["fc1.weight"].T.astype(np.float64)
    h += weights["fc1.bias"]
    for leaf, batch in (
        ("running_mean", h.mean(0)),
        ("running_var", h.var(0, ddof=1)),
    ):
        old = weights[f"bn1.{leaf}"].astype(np.float64)
        value = 0.9 * old + 0.1 * batch
        assert distance(got[f"buffer/bn1.{leaf}"], value) < 1e-12
    again = adapter.parity(ParityRequest(8, 32, None))
    assert sorted(again) == sorted(got)
    assert all(np.array_equal(got[name], again[name]) for name in got)


def test_dropout_is_off_only_when_asked(adapter: TorchAdapter, tmp_path: Path) -> None:
    write_weights(tmp_path / "weights.safetensors", shapes_of("mlp_deep.py"))
    data = {"x": np.ones((8, 100), np.float32), "y": np.zeros(8, np.int32)}
    write_safetensors(tmp_path / "data.safetensors", data)
    text = (GOLDEN / "mlp_deep.py").read_text()
    functional = tmp_path / "functional.py"
    functional.write_text(text.replace("self.dropout1(x)", "F.dropout(x, 0.5, True)"))
    attending = tmp_path / "attending.py"
    attend = "F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)"
    attending.write_text(text.replace("self.dropout1(x)", attend))
    for script in (GOLDEN / "mlp_deep.py", functional, attending):
        outputs = []
        for dropout in (False, False, True, True):
            adapter.build(request({"dir": tmp_path}, script, dropout=dropout))
            outputs.append(adapter.parity(ParityRequest(0, 8, None))["output"])
            torch.manual_seed(len(outputs))
        assert np.array_equal(outputs[0], outputs[1])
        assert not np.allclose(outputs[0], outputs[2])


def test_bytes_are_divided_as_float32(tmp_path: Path) -> None:
    module = load_script(GOLDEN / "mnist_cnn.py")
    data = {
        "x": np.arange(256, dtype=np.uint8).reshape(256, 1, 1, 1),
        "y": np.zeros(256, np.int32),
    }
    write_safetensors(tmp_path / "d.safetensors", data)
    x, y = module.load_data(tmp_path / "d.safetensors")
    unload_script(module)
    wanted = data["x"].astype(np.float32) / np.float32(255)
    assert x.dtype == torch.float32
    assert np.array_equal(x.cpu().numpy(), wanted)
    assert y.dtype == torch.int64


Update = Callable[[dict[str, Any], Any, Any], Any]


def hand_optimizer(
    kind: str,
    form: str = "outside",
    decay: Optional[str] = None,
    momentum: float = 0.0,
    rho: float = 0.9,
    beta1: float = 0.9,
) -> Update:
    """The formulas of src/ir/training.h, with lr 0.01, eps 1e-3, weight decay 0.1."""
    lr, eps, beta2, weight_decay = 0.01, 1e-3, 0.999, 0.1

    def update(state: dict[str, Any], p: Any, g: Any) -> Any:
        start = p
        if decay == "l2":
            g = g + weight_decay * p
        if decay == "decoupled":
            start = p - lr * weight_decay * p
        t = state["t"] = state.get("t", 0) + 1
        if kind == "sgd":
            v = state["v"] = momentum * state.get("v", 0.0) + g
            return start - lr * v
        if kind == "rmsprop":
            v = state["v"] = rho * state.get("v", 0.0) + (1 - rho) * g**2
            root = np.sqrt(v + eps) if form == "inside" else np.sqrt(v) + eps
            b = state["b"] = momentum * state.get("b", 0.0) + g / root
            return start - lr * b
        m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
        v = state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * g**2
        c1, c2 = 1 - beta1**t, 1 - beta2**t
        if form == "hat":
            return start - lr * math.sqrt(c2) / c1 * m / (np.sqrt(v) + eps)
        v_hat = v / c2
        root = np.sqrt(v_hat + eps) if form == "inside" else np.sqrt(v_hat) + eps
        return start - lr * (m / c1) / root

    return update


OPTIMIZERS = {
    "sgd": hand_optimizer("sgd"),
    "sgd_momentum_decoupled": hand_optimizer("sgd", decay="decoupled", momentum=0.9),
    "rmsprop_l2": hand_optimizer("rmsprop", decay="l2", momentum=0.5),
    "rmsprop_decoupled": hand_optimizer("rmsprop", decay="decoupled"),
    "rmsprop_inside": hand_optimizer("rmsprop", "inside", rho=0.8),
    "rmsprop_inside_momentum_l2": hand_optimizer(
        "rmsprop", "inside", "l2", momentum=0.9
    ),
    "rmsprop_inside_decoupled": hand_optimizer("rmsprop", "inside", "decoupled"),
    "adam_l2": hand_optimizer("adam", decay="l2"),
    "adam_inside_l2": hand_optimizer("adam", "inside", "l2"),
    "adam_hat_l2": hand_optimizer("adam", "hat", "l2"),
    "adam_decoupled": hand_optimizer("adam", decay="decoupled"),
    "adamw": hand_optimizer("adam", decay="decoupled", beta1=0.8),
    "adamw_inside": hand_optimizer("adam", "inside", "decoupled"),
    "adamw_hat": hand_optimizer("adam", "hat", "decoupled"),
}


def test_every_optimizer_golden_has_its_formula() -> None:
    scripts = {path.stem for path in (GOLDEN / "optimizers").glob("*.py")}
    assert scripts == set(OPTIMIZERS)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_optimizer_follows_its_formula(name: str) -> None:
    module = load_script(GOLDEN / "optimizers" / f"{name}.py")
    model = module.make_model().double()
    optimizer = module.make_optimizer(model)
    generator = np.random.default_rng(11)
    values = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
    states: dict[str, dict[str, Any]] = {n: {} for n in values}
    for _ in range(5):
        for n, parameter in model.named_parameters():
            grad = generator.normal(0, 0.1, values[n].shape)
            parameter.grad = torch.from_numpy(grad.copy())
            values[n] = OPTIMIZERS[name](states[n], values[n], grad)
        optimizer.step()
        for n, parameter in model.named_parameters():
            assert distance(parameter.detach().numpy(), values[n]) < 1e-13, n
    unload_script(module)


def golden_defaults() -> list[tuple[str, str, str]]:
    lines = (GOLDEN / "defaults.txt").read_text().splitlines()
    return [tuple(part.strip() for part in line.split("|")) for line in lines]  # type: ignore[misc]


@pytest.mark.parametrize(("optimizer", "topic", "value"), golden_defaults())
def test_listed_default_is_that_of_the_installed_torch(
    optimizer: str, topic: str, value: str
) -> None:
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.zeros(1))]
    made = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=1.0),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, lr=1.0),
        "adam": lambda: torch.optim.Adam(parameters, lr=1.0),
        "adamw": lambda: torch.optim.AdamW(parameters, lr=1.0),
    }[optimizer]()
    group = made.param_groups[0]

    def is_uniform(tensor: Any, bound: float) -> bool:
        flat = tensor.detach().flatten()
        return bool(
            flat.abs().max() <= bound
            and flat.abs().max() > 0.98 * bound
            and abs(float(flat.std()) / (bound / math.sqrt(3)) - 1) < 0.05
        )

    def first_step(gradient: float) -> float:
        parameters[0].data.zero_()
        parameters[0].grad = torch.full((1,), gradient)
        made.step()
        return -float(parameters[0])

    linear = torch.nn.Linear(400, 900)
    conv = torch.nn.Conv2d(16, 1024, 5)
    norm = torch.nn.BatchNorm1d(1)
    rows = torch.tensor([[0.0], [2.0]])
    norm(rows)
    table = torch.nn.Embedding(1000, 30).weight
    truths: dict[str, Callable[[], bool]] = {
        "initialiser of conv and linear weights": lambda: (
            "1/sqrt(fan_in)" in value
            and is_uniform(linear.weight, 1 / 20)
            and is_uniform(conv.weight, 1 / 20)
        ),
        "initialiser of biases": lambda: (
            "1/sqrt(fan_in)" in value
            and is_uniform(linear.bias, 1 / 20)
            and is_uniform(conv.bias, 1 / 20)
        ),
        "initialiser of embeddings": lambda: (
            value == "N(0, 1)"
            and abs(float(table.std()) - 1) < 0.02
            and abs(float(table.mean())) < 0.02
            and abs(float((table**4).mean()) - 3) < 0.2
        ),
        "optimizer epsilon": lambda: group["eps"] == float(value),
        # With g = eps the two forms differ by far: sqrt(v) is of the size of eps.
        "where epsilon sits": lambda: (
            value.startswith("outside: ")
            and first_step(1e-8)
            == pytest.approx(
                1e-8 / (1e-8 * math.sqrt(1 - group.get("alpha", 0.0)) + 1e-8), rel=1e-3
            )
        ),
        "RMSprop decay of the squared gradient": lambda: group["alpha"] == float(value),
        "weight decay": lambda: group["weight_decay"] == float(value.split(",")[0]),
        "BatchNorm epsilon": lambda: norm.eps == float(value),
        "BatchNorm momentum (weight of the new batch)": lambda: (
            norm.momentum == float(value)
        ),
        "BatchNorm running variance": lambda: (
            value == "unbiased"
            and norm.running_var.item() == pytest.approx(0.9 + 0.1 * 2.0)
        ),
        "LayerNorm epsilon": lambda: torch.nn.LayerNorm(3).eps == float(value),
    }
    assert truths[topic]()


def data_for(script: Path, directory: Path, rows: int) -> None:
    """Random rows for the inputs of the scripts below."""
    shapes: dict[str, dict[str, Any]] = {
        "all_sorts": {"picture": (3, 9, 8), "words": (20, 5), "y": (20,)},
        "crowd": {
            **{f"a_picture_of_channel_number_{n}": (1, 3, 3) for n in range(9)},
            "y": (4,),
        },
        "strange_names": {"model": (4,), "class": (4,), "unused": (9, 2)},
        "sequence_labels": {
            "a_rather_long_name_for_the_words_of_a_sentence": (11, 7),
            "and_one_for_the_tags_that_are_to_be_predicted": (5, 7),
        },
        "mlp_deep": {"x": (100,), "y": (10,)},
        "mnist_cnn": {"x": (1, 28, 28), "y": (10,)},
        "residual_cnn": {"x": (1, 28, 28), "y": (10,)},
        "resnet18_small": {"x": (3, 64, 64), "y": (10,)},
        "alexnet_small": {"x": (3, 67, 67), "y": (10,)},
        "bert_small": {
            "tokens": (500, 24),
            "token_types": (2, 24),
            "last": (24,),
            "labels": (500, 24),
        },
        "lstm_lm_tied_small": {"tokens": (500, 20), "labels": (500, 20)},
        "sequences": {"x": (6, 4), "last": (6,), "y": (3,)},
        "losses": {"x": (2, 4, 4), "y": (5,), "t": (2, 4, 4)},
        "ctc": {"sound": (12, 5), "words": (7, 4)},
    }
    integers = ("y", "words", "unused", "tokens", "token_types", "last", "labels")
    shapes["updates"] = shapes["mlp_deep"]
    names = script.stem.removeprefix("predict_"), script.read_text().split()[1]
    stem = next(s for name in names for s in shapes if name.startswith(s))
    generator = np.random.default_rng(2)
    data = {}
    for name, shape in shapes[stem].items():
        integer = name in integers or stem == "sequence_labels"
        if integer:  # the first number is the bound
            low = 1 if stem == "ctc" else 0  # a label is never the blank
            values = generator.integers(low, shape[0], (rows, *shape[1:]))
            data[name] = values.astype(np.int32)
        else:
            data[name] = generator.normal(0, 1, (rows, *shape)).astype(np.float32)
    write_safetensors(directory / "data.safetensors", data)


def run_alone(script: Path, steps: int) -> str:
    """What a script prints in some steps."""
    done = forks.run([str(script), "--steps", str(steps)])
    assert done.returncode == 0, done.stderr
    return done.stdout


TRAINING = sorted(
    path.name
    for path in GOLDEN.glob("*.py")
    if not path.name.startswith(("predict_", "cuda_graphs_"))
)
# The others run with BAKEOFF_FULL_TESTS=1.
EVERYDAY = ("mnist_cnn", "all_sorts", "sequences", "input_dataset", "mlp_deep_as_is")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name[:-3] in EVERYDAY else [full_tier])
        for name in TRAINING
    ],
)
def test_script_runs_alone_and_learns(name: str, tmp_path: Path) -> None:
    source = (GOLDEN / name).read_text()
    assert "bakeoff" not in source.lower()
    # Small batches, a learning rate that shows at once, no half minute of compiling;
    # half precision takes long where the processor does not multiply in it.
    batch = 4 if name.startswith("precision") else 16
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in (
            "BATCH_SIZE",
            "LEARNING_RATE",
        ):
            value = batch if "BATCH" in ast.unparse(node) else 0.01
            source = source.replace(
                ast.unparse(node), f"{ast.unparse(node.targets[0])} = {value}"
            )
    # Weights of the framework's own are other ones every time.
    source = source.replace("import torch\n", "import torch\ntorch.manual_seed(1)\n", 1)
    source = source.replace("    model.compile()\n", "")
    source = source.replace('    model.compile(mode="max-autotune")\n', "")
    (tmp_path / "train.py").write_text(source)
    data_for(GOLDEN / name, tmp_path, 2 * batch)
    if "weights.safetensors" in source:
        write_weights(tmp_path / "weights.safetensors", shapes_of(name))
    # The last batch is the first one again, of two. The deepest networks learn slowly.
    slow = name.endswith("_as_is.py") or name.startswith(("alexnet", "all_sorts"))
    steps = 101 if slow and "float16_scaler" not in name else 41
    printed = run_alone(tmp_path / "train.py", steps)
    losses = [float(line.split()[-1]) for line in printed.splitlines()]
    assert len(losses) == steps // 10 + 1
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "name", sorted(path.name for path in GOLDEN.glob("predict_*.py"))
)
def test_prediction_runs_alone(name: str, tmp_path: Path) -> None:
    script = tmp_path / "predict.py"
    script.write_text(
        re.sub(r"BATCH_SIZE = \d+", "BATCH_SIZE = 8", (GOLDEN / name).read_text())
    )
    data_for(GOLDEN / name, tmp_path, 16)
    if "weights.safetensors" in script.read_text():
        write_weights(tmp_path / "weights.safetensors", shapes_of(name))
    lines = run_alone(script, 21).splitlines()
    assert [line.split()[1].rstrip(":") for line in lines] == ["0", "10", "20"]
    means = [float(line.split()[-1]) for line in lines]
    assert means[0] == means[1] == means[2]  # two batches: they repeat


def test_compiled_step_gives_the_eager_losses(
    adapter: TorchAdapter, mnist: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the aot_eager backend: the plumbing of a compiled model, not its codegen."""
    text = cnn_text()
    compiled = mnist["dir"] / "compiled.py"
    line = "    model.to(device)\n"
    compiled.write_text(
        text.replace(line, line + '    model.compile(backend="aot_eager")\n')
    )
    losses = []
    for script in (cnn(mnist), compiled):
        effective = adapter.build(request(mnist, script))
        assert effective["compiled"] == (script is compiled)
        adapter.parity(ParityRequest(0, 16, None))
        losses.append(adapter.losses(3).losses)
        before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        adapter.losses(2)
        after = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        assert after == before  # a reset does not compile again
    assert losses[1] == pytest.approx(losses[0], rel=1e-12)


def test_channels_last_is_seen(adapter: TorchAdapter, mnist: dict[str, Any]) -> None:
    text = cnn_text("mnist_cnn_compiled.py")
    mine = mnist["dir"] / "mine.py"
    mine.write_text(text.replace('    model.compile(mode="max-autotune")\n', ""))
    assert adapter.build(request(mnist, mine))["channels_last"] is True
    got = adapter.parity(ParityRequest(0, 16, None))
    wanted = by_hand(mnist, torch.float64, 16)
    assert all(distance(got[name], wanted[name]) < 1e-12 for name in wanted)
    assert adapter.build(request(mnist, cnn(mnist)))["channels_last"] is False
