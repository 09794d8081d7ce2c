"""Scripts that cheat in the race, put together from the pieces in cheats/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripts.edits import codes

CHEATS = Path(__file__).resolve().parent / "cheats"
OF_TORCH, OTHERS = codes(CHEATS / "torch.txt"), codes(CHEATS / "others.txt")


@dataclass(frozen=True)
class Cheat:
    name: str
    code: str  # appended to the emitted script, whose step is called true_step


def cheats(of: str, main: str = "") -> list[Cheat]:
    """What stands under `of NAME`, below the prelude and above the section `main`."""
    pieces = OF_TORCH if of in ("alone", "unfair", "prediction") else OTHERS
    below = f"\n\n{pieces[main]}" if main else ""
    return [
        Cheat(title.removeprefix(f"{of} "), f"\n{pieces['prelude']}\n\n{code}{below}")
        for title, code in pieces.items()
        if title.startswith(f"{of} ")
    ]


def paired(trigger: str, act: str) -> Cheat:
    """What tells the race from the proof, and what is done then."""
    tells, cheap = OF_TORCH[f"trigger {trigger}"], OF_TORCH[f"act {act}"]
    code = f"\n{OF_TORCH['prelude']}\n\n{tells}\n{cheap}\n\n{OF_TORCH['main']}"
    return Cheat(f"{act}_{trigger}", code)


def keras(on: str) -> list[Cheat]:
    """`on` names Keras and its backend. Keras 2 trains as Keras 3 on TensorFlow does."""
    return cheats("keras-tensorflow" if on == "keras2" else on, "keras")


def libtorch() -> list[Cheat]:
    body = "\n" + OTHERS["libtorch"].replace("MODEL", "CheatedMlp")
    return [
        Cheat(name, body.replace("ACT", act.strip()).replace("NAME", name))
        for title, act in OTHERS.items()
        for of, _, name in [title.partition(" ")]
        if of == "libtorch" and name
    ]


PAIRS = [line.split() for line in OF_TORCH["pairs"].splitlines()]
TORCH = [*(paired(trigger, act) for trigger, act in PAIRS), *cheats("alone")]
ALONE = cheats("unfair")
PREDICT = cheats("prediction", "predict")
JAX, TENSORFLOW, LIBTORCH = (
    cheats("jax", "jax"),
    cheats("tensorflow", "tensorflow"),
    libtorch(),
)
