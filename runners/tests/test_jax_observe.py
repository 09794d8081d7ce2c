"""Observing JAX scripts, and scripts that make it hard."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Callable

import pytest
from observed import RUNNERS, Observed, bare, written
from tiers import full_tier

from bakeoff_observe.values import main_reasons

pytest.importorskip("jax")

TRAIN = """
import sys
from functools import partial
import jax, jax.numpy as jnp
import numpy as np
from jax import jit

EAGER, DEBUG, X64 = (word in sys.argv for word in ("eager", "debug", "x64"))
if EAGER:
    jax.config.update("jax_disable_jit", True)
if DEBUG:
    jax.config.update("jax_debug_nans", True)
if X64:
    jax.config.update("jax_enable_x64", True)
import optax

def loss_of(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)

optimizer = optax.adam(1e-2)

class Trainer:
    @partial(jax.jit, static_argnums=0, donate_argnames=("params", "state"))
    def step(self, params, state, x, y):
        \"\"\"One step.\"\"\"
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        made = {"a": x[0, 0], "loss": loss}
        return optax.apply_updates(params, updates), state, made

@jit
def evaluate(params, x, y):
    return loss_of(params, x, y)

@jit
def mean_of(total, x):  # it, too, is given what it returned
    return total + x.mean()

@jax.jit
def normal(x):
    return (x - x.mean()) / x.std()

rows = np.random.default_rng(0).random((20, 32, 8))
rows = rows.astype("float64" if X64 else "float32")
params = {"w": jnp.full((8, 16), 0.1), "v": jnp.full((16, 1), 0.1)}
state, total, trainer = optimizer.init(params), jnp.zeros(()), Trainer()
for i in range(60):
    x = normal(rows[i % 20] if i != 50 else rows[0, :7])
    y = x.sum(axis=1, keepdims=True)
    total = mean_of(total, x)
    params, state, made = trainer.step(params, state, x, y)
    if "block" in sys.argv:
        jax.block_until_ready(params)
        made["loss"].item()
    if i % 20 == 19:
        print(i, float(made["loss"]).hex(), float(evaluate(params, x, y)).hex())
        for k in range(3):
            total = mean_of(total, x)
print(Trainer.step.__name__, Trainer.step.__doc__, normal._cache_size(), float(total))
assert "sine" in jit(jnp.sin).lower(1.0).as_text()
assert jit(jnp.sin).trace(1.0).jaxpr.out_avals[0].shape == ()
assert jax.jit(jax.jit(jnp.cos))(0.0) == 1.0 and normal.__wrapped__(x).shape == x.shape
assert jax.jit(lambda n, x: x * n, static_argnames="n")(n=2, x=3.0) == 6.0
assert jax.vmap(normal)(rows[:2]).shape == (2, 32, 8)
assert jax.grad(jit(lambda x: x**2))(3.0) == 6.0
"""

# What each loop ends its steps with, and how often.
LOOPS = """
import sys
import jax, jax.numpy as jnp
import optax

def loss_of(params, x):
    return jnp.mean((x @ params) ** 2)

params, x = jnp.ones((4, 1)), jnp.ones((8, 4))
optimizer = optax.sgd(0.1)
state = optimizer.init(params)
if sys.argv[1] == "update":
    for i in range(70):
        loss, grads = jax.value_and_grad(loss_of)(params, x)
        updates, state = optimizer.update(grads, state)
        params = optax.apply_updates(params, updates)
elif sys.argv[1] == "backward":
    for i in range(70):
        params = params - 0.1 * jax.grad(loss_of)(params, x)
elif sys.argv[1] == "scan":
    def step(params, x):
        return params - 0.1 * jax.grad(loss_of)(params, x), 0.0
    for i in range(70):
        params, _ = jax.lax.scan(step, params, jnp.stack([x, x]))
        jax.device_get(params)
elif sys.argv[1] == "two":  # a generator and its critic, with sizes of their own
    @jax.jit
    def small(params, x):
        return params - 0.1 * jax.grad(loss_of)(params, x), loss_of(params, x)
    @jax.jit
    def large(params, x):
        return params - 0.1 * jax.grad(loss_of)(params, x), loss_of(params, x)
    more, wide = jnp.ones((4, 3)), x
    for i in range(70):
        for k in range(3):
            params, loss = small(params, x)
        more, loss = large(more, wide)
"""

# Loops that are not compiled, and functions that are compiled again and again.
EAGER = """
import sys
from functools import partial
import jax, jax.numpy as jnp
import numpy as np
import optax

word = sys.argv[1]
STEPS = 30, 80  # as some kinds of steps are believed later than others

def loss_of(params, x, y):
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean((x.sum(1) - y) ** 2)

optimizer = optax.adam(1e-2)

def step(params, state, x, y, train=True):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    if word == "float":
        float(loss)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss

def plain(params, x, y, i):
    grads = jax.grad(loss_of)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 1e-3 * i * g, params, grads)

class Trainer:
    def __init__(self, params):
        self.params, self.state = params, optimizer.init(params)

    def keep(self, params, state):
        self.params, self.state = params, state

    def step(self, x, y):
        params, state, loss = step(self.params, self.state, x, y)
        self.keep(params, state)
        return loss

    def outer(self, x, y):
        loss, grads = jax.value_and_grad(loss_of)(self.params, x, y)
        updates, state = optimizer.update(grads, self.state)
        self.keep(optax.apply_updates(self.params, updates), state)
        return loss

rows = np.random.default_rng(0).random((20, 32, 8), "float32")
params = [jnp.full((8, 8), 0.1 * k) for k in range(1, 4)]
state, trainer = optimizer.init(params), Trainer(params)

@partial(jax.jit, static_argnames="rate")
def static(params, x, rate):
    y = x.sum(axis=1)
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - rate * g, params, grads), loss

def of_batch(params):
    return loss_of(params, *batch)

def main():
    global params, state, batch
    loss = 0
    for i in range(STEPS[word == "plain"]):
        x = rows[i % 20]
        y = x.sum(axis=1)
        if word == "object":
            loss = trainer.outer(x, y)
        elif word == "rebound":
            batch = x, y
            loss, grads = jax.value_and_grad(of_batch)(params)
            updates, state = optimizer.update(grads, state, params)
            params = optax.apply_updates(params, updates)
        elif word == "plain":
            params = plain(params, x, y, i)
        elif word == "static":
            params, loss = static(params, x, 1e-3 / (1 + i % 6))
        elif word == "shapes":
            params, loss = static(params, x[: 16 + i % 2], 1e-3)
        elif word == "anew":
            params, loss = jax.jit(lambda p, x: static(p, x, 1e-3))(params, x)
        else:
            params, state, loss = step(params, state, x, y, train=i >= 0)
    print(1, float(loss).hex(), [float(p.sum()).hex() for p in params])

main()
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jax") / "train.py"
    path.write_text(TRAIN)
    return path


def last_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1].isdigit() or "step" in line]


def test_steps_facts_and_the_same_numbers(train: Path) -> None:
    with Observed(train, alone=True) as script:
        first = script.run(20, facts=True)
        assert first["kind"] == "function" and len(first["marks"]) == 20
        assert first["notes"] == []
        facts = first["facts"]["jax"]
        assert facts["parameters"] == 8 * 16 + 16 and facts["parameter_tensors"] == 2
        assert facts["function"] == "step" and facts["donates"]
        assert facts["batch"] == 32 and facts["dtypes"] == ["float32"]
        assert not facts["x64"] and not facts["disable_jit"] and not facts["debug_nans"]
        assert facts["blocks_per_step"] == facts["reads_per_step"] == 0
        assert "optax" in facts["versions"]
        (optimizer,) = facts["optimizers"]
        assert optimizer["class"] == "Adam" and optimizer["lr"] == 0.01
        assert first["compiles"] > 0 and first["compile_ns"] > 0
        steady = script.run(18, facts=True)
        assert len(steady["marks"]) == 18
        ops = script.run(2, watch="profile")["ops"]
        assert ops[0]["name"] and ops[0]["seconds"] > 0 and ops[0]["calls"] >= 1
        last = script.end()
        assert len(last["marks"]) == 19 and last["compiles"] > 0  # other shapes
        lines = last_lines(script.output())
        assert lines == last_lines(bare(train))
        told = float.fromhex(lines[0].split()[1])  # of the 20th step
        assert first["loss"] == told
        assert float.fromhex(lines[2].split()[1]) == last["loss"]


SWITCHES = [
    ("eager", "jit", "disable_jit"),
    ("debug", "no_debug_nans", "debug_nans"),
    ("x64", "no_x64", "x64"),
    ("x64", "float32", "x64"),
    ("block", "no_block", "blocks_per_step"),
]


def test_switches_that_nothing_asks_for(train: Path) -> None:
    with Observed(train, {switch: True for _, switch, _ in SWITCHES}) as script:
        assert script.run(12)["thrown"] == []


@pytest.fixture(scope="module")
def asks(train: Path) -> Callable[[str], Any]:
    """What a word of the script's command line asks for: one run for each."""

    @cache
    def first_steps(word: str) -> Any:
        with Observed(train, argv=[word]) as script:
            return script.run(12, facts=True)

    return first_steps


@pytest.mark.parametrize(("word", "switch", "fact"), SWITCHES)
def test_switches(
    train: Path, asks: Callable[[str], Any], word: str, switch: str, fact: str
) -> None:
    steps = 12
    asked = asks(word)
    with Observed(train, {switch: True}, [word]) as script:
        thrown = script.run(steps, facts=True)
    assert asked["facts"]["jax"][fact] and not thrown["facts"]["jax"][fact]
    assert thrown["thrown"] == [switch]
    assert len(asked["marks"]) == len(thrown["marks"]) == steps
    assert asked["losses"] == pytest.approx(thrown["losses"], rel=1e-4)
    if switch == "no_block":
        assert asked["facts"]["jax"]["reads_per_step"] > 0.8


def test_an_option_of_the_environment(train: Path) -> None:
    environment = {"JAX_ENABLE_X64": "1"}
    switches = {"no_x64": True}
    with Observed(train, switches, environment=environment, alone=True) as script:
        seen = script.run(3, facts=True)
    assert seen["thrown"] == ["no_x64"] and not seen["facts"]["jax"]["x64"]


@full_tier
def test_one_thread_of_xla(train: Path) -> None:
    flag = "--xla_cpu_multi_thread_eigen=false"
    environment = {"XLA_FLAGS": f"{flag} --xla_cpu_enable_fast_math=false"}
    with Observed(train, environment=environment) as script:
        assert script.run(3, facts=True)["facts"]["jax"]["threads"] == 1
    switches = {"xla_threads": True}
    with Observed(train, switches, environment=environment) as script:
        seen = script.run(3, facts=True)
    assert seen["thrown"] == ["xla_threads"]
    assert seen["facts"]["jax"]["threads"] == len(os.sched_getaffinity(0))
    with Observed(train, switches) as script:
        assert script.run(3)["thrown"] == []


@full_tier
def test_loops_of_other_kinds(tmp_path: Path) -> None:
    path = written(tmp_path / "loops.py", LOOPS)
    with Observed(path, argv=["update"]) as script:
        seen = script.run(5, facts=True)
        assert seen["kind"] == "update" and seen["facts"]["jax"]["parameters"] == 4
        assert seen["losses"][0] == 16.0
        assert len(script.end()["marks"]) == 65
    with Observed(path, argv=["backward"]) as script:
        seen = script.end()
        assert seen["kind"] == "backward" and len(seen["marks"]) == 70
    with Observed(path, argv=["scan"]) as script:
        seen = script.run(1 << 50, facts=True)
        assert seen["kind"] == "function" and len(seen["marks"]) == 70
        facts = seen["facts"]["jax"]
        assert facts["function"] == "scan" and facts["reads_per_step"] == 1
        assert facts["parameters"] == 4
    with Observed(path, argv=["two"]) as script:
        seen = script.end()
        assert seen["kind"] == "function" and len(seen["marks"]) == 70


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jax") / "eager.py"
    path.write_text(EAGER)
    return path


def seen_eager(path: Path, word: str, switches: Any) -> tuple[Any, Any, str]:
    with Observed(path, switches, [word]) as script:
        first = script.run(70 if word == "plain" else 20, facts=True)
        last = script.end()
        assert "error" not in last, script.output()
        return first, last, script.output()


def test_a_loop_that_is_not_compiled(eager: Path) -> None:
    plain, last, printed = seen_eager(eager, "step", {})
    found = plain["facts"]["jax"]["eager_loop"]
    assert found["function"] == "step" and found["scope"] == "function"
    lines = eager.read_text().splitlines()
    assert lines[found["line"] - 1].startswith("def step(")
    assert plain["kind"] == "update"
    assert printed == bare(eager, "step")
    first, rest, _ = seen_eager(eager, "step", {"jit_step": True})
    assert first["thrown"] == ["jit_step"] and first["notes"] == []
    assert first["kind"] == "update" and len(rest["marks"]) == len(last["marks"]) == 10
    assert "eager_loop" not in first["facts"]["jax"]
    assert first["losses"] == pytest.approx(plain["losses"], rel=1e-4)
    assert rest["loss"] == pytest.approx(last["loss"], rel=1e-3)


@pytest.mark.parametrize(
    "word",
    ["float", *(pytest.param(word, marks=full_tier) for word in ("object", "rebound"))],
)
def test_a_step_of_which_parts_can_be_compiled(eager: Path, word: str) -> None:
    _, last, _ = seen_eager(eager, word, {})
    first, rest, _ = seen_eager(eager, word, {"jit_step": True})
    assert first["thrown"] == ["jit_step"] and len(rest["marks"]) == 10
    assert first["notes"][0].count(" cannot be compiled: ") == len(first["notes"]) == 1
    assert first["facts"]["jax"]["eager_loop"]["scope"] == "gradient"
    assert rest["loss"] == pytest.approx(last["loss"], rel=1e-3)


def test_a_step_with_a_number_that_changes(eager: Path) -> None:
    first, rest, printed = seen_eager(eager, "plain", {"jit_step": True})
    assert first["thrown"] == ["jit_step"] and first["kind"] == "backward"
    assert first["compiles"] - rest["compiles"] < 60 and rest["compiles"] <= 1
    meant = bare(eager, "plain").split("[")[1].split("'")[1::2]
    told = printed.split("[")[1].split("'")[1::2]
    numbers = [[float.fromhex(x) for x in each] for each in (told, meant)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3)


@pytest.mark.parametrize(
    ("word", "function", "reasons"),
    [
        ("static", "static", ["params: weak type", "rate: Python value"]),
        pytest.param(
            "shapes", "static", ["params: weak type", "x: shape"], marks=full_tier
        ),
        ("anew", "<lambda>", ["a new function each time"]),
    ],
)
def test_functions_that_are_compiled_again(
    eager: Path, word: str, function: str, reasons: list[str]
) -> None:
    with Observed(eager, {}, [word]) as script:
        seen = script.run(20, facts=True)
        assert seen["kind"] == "function" and len(seen["marks"]) == 20
        assert seen["facts"]["jax"]["retraces"] == {function: reasons}
        assert seen["facts"]["jax"]["recompiled"][function] > 1


def test_reasons_that_are_rare_are_not_told() -> None:
    counted = Counter({"params: weak type": 1, "x: shape": 7, "y: shape": 4})
    assert main_reasons(counted) == ["x: shape", "y: shape"]
    assert main_reasons(Counter()) == []


STEP = """
import jax, jax.numpy as jnp
@jax.jit
def step(params, x):
    return params - 0.1 * jax.grad(lambda p: ((x @ p) ** 2).mean())(params), x.mean()
params, x = jnp.ones((4, 1)), jnp.ones((8, 4))
def train(steps):
    global params
    for i in range(steps):
        params, loss = step(params, x)
"""


def observe(tmp_path: Path, text: str, alone: bool = False) -> tuple[Any, Any, str]:
    path = written(tmp_path / "script.py", text)
    with Observed(path, alone=alone) as script:
        first = script.run(10)
        if first["ended"]:
            return first, first, script.output()
        return first, script.end(), script.output()


@full_tier
def test_scripts_that_move_and_close_things(tmp_path: Path) -> None:
    text = """
import os, subprocess, sys, tempfile
os.close(3) if os.path.exists("/proc/self/fd/3") else None
os.close(4) if os.path.exists("/proc/self/fd/4") else None
os.chdir(tempfile.mkdtemp())
assert not {"PYTHONPATH", "BAKEOFF_OBSERVE"} & set(os.environ)
assert not [p for p in sys.path if "observe" in p or p.endswith("runners")]
command = [sys.executable, "-c", "print(6 * 7)"]
print(subprocess.run(command, capture_output=True).stdout)
"""
    text += STEP
    text += """
if __name__ == "__main__":
    train(20)
    if os.fork() == 0:
        train(20)  # of nobody's concern
        os._exit(0)
    os.wait()
    try:
        get_ipython().run_line_magic("matplotlib", "inline")
    except NameError:
        pass
    train(20)
    print("done", __file__)
"""
    first, last, printed = observe(tmp_path, text, alone=True)
    assert len(first["marks"]) == 10 and len(last["marks"]) == 30
    assert last["ended"] and last["notes"] == [] and "done" in printed
    assert "42" in printed and "sitecustomize" not in printed


def test_scripts_that_end_early(tmp_path: Path) -> None:
    raising = STEP + "train(15)\nraise ValueError('too bad')\n"
    first, last, printed = observe(tmp_path, raising)
    assert len(last["marks"]) == 5 and last["error"] == "ValueError: too bad"
    assert last["where"].endswith("script.py:12") and "Traceback" in printed
    leaving = STEP + "import sys\ntrain(15)\nsys.exit(3)\n"
    first, last, printed = observe(tmp_path, leaving)
    assert len(last["marks"]) == 5 and "error" not in last
    first, last, printed = observe(
        tmp_path, "import jax\nprint(jax.numpy.ones(2).sum())"
    )
    assert first["ended"] and first["kind"] == "" and "2.0" in printed


def test_a_script_that_closes_everything_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    told = tmp_path / "told"
    text = "import os\ntrain(20)\nos.closerange(3, 1024)\ntrain(20)\n"
    path.write_text(f"{STEP}{text}open({str(told)!r}, 'w')\n")
    with Observed(path) as script:
        assert len(script.run(10)["marks"]) == 10
        with pytest.raises(AssertionError):
            script.run(20)  # nobody answers
        assert script.process.wait() == 0
    assert told.exists()


@full_tier
def test_a_module_of_a_package(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "steps.py").write_text(STEP)
    (package / "train.py").write_text(
        "import sys\nfrom .steps import train\nif __name__ == '__main__':\n"
        "    train(int(sys.argv[1]))\n"
    )
    words = ["package.train", "12"]
    with Observed("-m", argv=words, folder=tmp_path, alone=True) as script:
        assert len(script.end()["marks"]) == 12


def test_a_sitecustomize_of_the_users_own_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['MINE'] = '1'\n")
    path = written(
        tmp_path / "script.py",
        "import os, sys\nprint(os.environ['MINE'], os.environ['PYTHONPATH'])",
    )
    site = RUNNERS / "bakeoff_observe" / "site"
    environment = {
        "PYTHONPATH": f"{site}:{tmp_path}",
        "BAKEOFF_OBSERVED_PYTHONPATH": str(tmp_path),
    }
    with Observed(path, environment=environment, alone=True) as script:
        assert script.end()["ended"]
        assert script.output() == f"1 {tmp_path}\n"


def test_nothing_happens_without_a_supervisor(tmp_path: Path) -> None:
    path = written(
        tmp_path / "script.py",
        "import sys\nprint([m for m in sys.modules if 'bakeoff' in m])",
    )
    site = RUNNERS / "bakeoff_observe" / "site"
    done = subprocess.run(
        [sys.executable, str(path)],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n" and done.stderr == ""


SHAPES = """
import jax
import jax.numpy as jnp
import numpy as np

@jax.jit
def step(w, x):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.01 * grad, loss

w = jnp.ones((4, 1))
for i in range(20):
    w, loss = step(w, np.full((i + 3, 4), 1.0 + i, np.float32))
"""


@full_tier
def test_the_first_batch_again(tmp_path: Path) -> None:
    path = written(tmp_path / "shapes.py", SHAPES)
    with Observed(path) as script:
        script.run(5)
        plain = script.run(10, facts=True)
    with Observed(path, {"cached_batch": True}) as script:
        script.run(5)
        cached = script.run(10, facts=True)
        last = script.end()
    assert plain["facts"]["jax"]["retraces"] == {"step": ["x: shape"]}
    assert plain["compiles"] >= 10 and cached["compiles"] == 0
    assert cached["thrown"] == ["cached_batch"] and "error" not in last
    told = cached["losses"]
    assert len(told) == 10 and told[2:] == sorted(
        told[2:], reverse=True
    )  # of the same rows
    assert len(last["marks"]) == 5


ANEW = """
import jax
import jax.numpy as jnp

rate, x = 0.01, jnp.arange(8.0).reshape(2, 4) / 8
w = jnp.ones((4, 1))
for i in range(32):
    @jax.jit
    def step(w):
        loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        return w - rate * grad, loss

    w, loss = step(w)
print(float(loss).hex())
"""


@full_tier
def test_a_function_that_is_defined_anew(tmp_path: Path) -> None:
    path = written(tmp_path / "anew.py", ANEW)
    printed = []
    for switches in ({}, {"one_function": True}):
        with Observed(path, switches) as script:
            script.run(8)
            seen = script.run(10, facts=True)
            assert "error" not in script.end()
            printed.append(script.output().splitlines()[-1])
        facts = seen["facts"]["jax"]
        assert seen["thrown"] == list(switches) and len(seen["marks"]) == 10
        if switches:
            assert seen["compiles"] == 0
        else:
            assert seen["compiles"] >= 10
            assert facts["retraces"] == {"step": ["a new function each time"]}
    assert printed[0] == printed[1]


@full_tier
def test_functions_that_differ_in_a_number(tmp_path: Path) -> None:
    text = ANEW.replace("rate, x = 0.01,", "x =").replace(
        "for i in range(32):",
        "def made(rate):",
    )
    text = text.replace(
        "    w, loss = step(w)",
        "    return step\n\nfor i in range(32):\n    w, loss = made(0.01 / (i + 1))(w)",
    )
    path = written(tmp_path / "anew.py", text)
    for switches in ({}, {"one_function": True}):
        with Observed(path, switches) as script:
            script.run(8)
            seen = script.run(10, facts=True)
        assert len(seen["marks"]) == 10 and seen["thrown"] == list(switches)
        assert len(seen["compile_steps"]) == (0 if switches else 10)
        assert 0 <= seen["compile_ns"] <= seen["ns"]
        if not switches:
            assert seen["compile_ns"] > seen["ns"] / 3, "booked: most of such a step"


CLOCK = """
import sys
import time
import jax
import jax.numpy as jnp

@jax.jit
def step(w, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w @ w @ w) ** 2))(w)
    return w - 1e-9 * gradient, loss

w, x = jnp.ones((700, 700)), jnp.ones((700, 700))
spent = 0.0
for _ in range(40):
    begin = time.perf_counter()
    w, loss = step(w, x)
    if "waits" in sys.argv:
        loss.block_until_ready()
        w.block_until_ready()
    spent += time.perf_counter() - begin
"""


@pytest.mark.parametrize(
    ("word", "early"), [("", True), pytest.param("waits", False, marks=full_tier)]
)
def test_a_clock_that_is_read_too_early(tmp_path: Path, word: str, early: bool) -> None:
    path = written(tmp_path / "clock.py", CLOCK)
    with Observed(path, argv=[word]) as script:
        script.run(5)
        facts = script.run(20, facts=True)["facts"]["jax"]
    assert (facts["early_clocks"] >= 0.5) == early
    line = CLOCK.splitlines().index("    begin = time.perf_counter()") + 1
    assert line <= facts["lines"]["a clock"] <= line + 6
    assert "a clock" not in facts["calls_per_step"]


CALLED = """
import sys
import jax
import jax.numpy as jnp

w = jnp.ones((4, 1))

@jax.jit
def predict(x):
    return jnp.tanh(x @ w).sum()

total = 0.0
for _ in range(100):
    total += float(predict(jnp.ones((8, 4))))
if "train" in sys.argv:
    grad = jax.jit(jax.grad(lambda w: jnp.sum(w**2)))
    for _ in range(100):
        w = w - 0.1 * grad(w)
print(total.hex())
"""


def test_calls_of_a_function_that_nothing_trains(tmp_path: Path) -> None:
    path = written(tmp_path / "calls.py", CALLED)
    plain = bare(path)
    with Observed(path) as script:
        first = script.run(5, facts=True)
        assert first["kind"] == "call" and 16 <= len(first["marks"]) <= 64
        script.end()
        assert script.output() == plain


OUTSIDE = """
import sys
import jax
import jax.numpy as jnp

w = jnp.ones((8, 8))

@jax.jit
def gradient(w):
    return jax.grad(lambda w: jnp.mean(jnp.tanh(w @ w) ** 2))(w)

def update(w, g):
    for _ in range(40):
        w = w - 1e-3 * g
    return w

if "whole" in sys.argv:
    update = jax.jit(update)
for _ in range(100_000):
    w = update(w, gradient(w))
print(float(w.sum()).hex())
"""


@pytest.mark.parametrize("word", [pytest.param("part", marks=full_tier), "whole"])
def test_ops_outside_of_compiled_functions(tmp_path: Path, word: str) -> None:
    path = written(tmp_path / "eager.py", OUTSIDE)
    part = word == "part"
    with Observed(path, argv=[word]) as script:
        script.run(5)
        for seconds in (1, 10, 60):  # beside other work there are few looks in a second
            lines = script.run(100_000, seconds=seconds, watch="lines")["lines"]
            eager = sum(one["eager"] for one in lines)
            shown = eager > 0.5 if part else eager < 0.1
            if shown:
                break
    assert shown, lines


UNROLLED = """
import sys
import jax
import jax.numpy as jnp

def outputs(w, x):
    h = jnp.zeros(16)
    for t in range(40):
        h = jnp.tanh(h @ w + x[t])
    return jnp.mean(h ** 2)

if "train" in sys.argv:
    @jax.jit
    def step(w, x):
        loss, gradient = jax.value_and_grad(outputs)(w, x)
        return w - 1e-3 * gradient, loss

    w = jnp.eye(16)
    for _ in range(40):
        w, loss = step(w, jnp.ones((40, 16)))
else:
    print(float(outputs(jnp.eye(16), jnp.ones((40, 16)))))
"""


@full_tier
def test_a_loop_that_is_unrolled(tmp_path: Path) -> None:
    path = written(tmp_path / "unrolled.py", UNROLLED)
    line = UNROLLED.splitlines().index("    for t in range(40):") + 1
    with Observed(path, argv=["train"], alone=True) as script:
        first = script.run(3, facts=True, watch="lines")
        assert first["facts"]["jax"]["functions"]["step"][0] == 3
    traced = {one["line"]: one["traced"] for one in first["loops"]}
    assert set(traced) == {line}, "the loop around the calls is part of no function"
    assert first["compile_ns"] > 0


def test_a_script_without_steps(tmp_path: Path) -> None:
    path = written(tmp_path / "unrolled.py", UNROLLED)
    with Observed(path) as script:
        found = script.run(3, facts=True, watch="lines")
    assert found["ended"] and found["marks"] == []
    assert found["facts"]["jax"]["platform"] == "cpu"


CONFIGS = """
import functools
import jax
import jax.numpy as jnp

class Config:
    def __init__(self, rate):
        self.rate = rate

@functools.partial(jax.jit, static_argnames=("config",))
def step(w, config):
    gradient = jax.grad(lambda w: jnp.mean(w ** 2))(w)
    return w - config.rate * gradient

w = jnp.ones(4)
for _ in range(20):
    w = step(w, config=Config(0.1))
"""


def test_objects_as_static_arguments(tmp_path: Path) -> None:
    path = written(tmp_path / "configs.py", CONFIGS)
    with Observed(path) as script:
        facts = script.run(10, facts=True)["facts"]["jax"]
    assert facts["retraces"]["step"] == ["config: another object"]
