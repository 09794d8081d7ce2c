"""Training scripts with planted causes of slowness, and pairs of equal speed (planted.txt)."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
sys.path.insert(0, str(HERE.parent.parent))

from scripts.edits import Edit, edited, edits, read  # noqa: E402


@dataclass(frozen=True)
class Case:
    """`causes`: for each planted cause the keys of rules that name it, the best first.

    `base` is done to both scripts; without causes both are equally fast.
    """

    name: str
    script: str
    causes: tuple[tuple[str, ...], ...]
    slow: tuple[Edit, ...]
    base: tuple[Edit, ...] = ()
    backend: str = ""  # of Keras 3; "": the one in the script

    def sources(self) -> tuple[str, str]:
        """The slow one and the fast one."""
        text = (SCRIPTS / f"{self.script}.py").read_text()
        if self.backend:
            text = re.sub(
                r'(KERAS_BACKEND"\] = )"\w+"', rf'\1"{self.backend}"', text, count=1
            )
        fast = edited(text, self.base, self.name)
        return edited(fast, self.slow, self.name), fast

    def environment(self) -> str:
        framework = self.script.split("_")[0]
        if framework != "keras":
            return framework
        found = re.search(r'KERAS_BACKEND"\] = "(\w+)"', self.sources()[1])
        assert found, self.name
        return found.group(1)


TITLE = re.compile(r"(\w+): (\w+)(?: on (\w+))?(?: \? (.+))?")


def cases() -> list[Case]:
    """Those of planted.txt, in its order."""
    found = []
    for title, lines in read(HERE / "planted.txt").items():
        parts = TITLE.fullmatch(title)
        assert parts, title
        name, script, backend, keys = parts.groups()
        causes = keys.split("; ") if keys else []
        begin = lines.index("slow") if "slow" in lines else -1
        found.append(
            Case(
                name,
                script,
                tuple(tuple(cause.split(", ")) for cause in causes),
                slow=edits(lines[begin + 1 :]),
                base=edits(lines[: max(begin, 0)]),
                backend=backend or "",
            )
        )
    return found


PLANTED = tuple(case for case in cases() if case.causes)
EQUAL = tuple(case for case in cases() if not case.causes)

# Each is raced against itself.
IDENTICAL = tuple(
    Case(f"identical_{path.stem}", path.stem, (), ())
    for path in sorted(SCRIPTS.glob("*.py"))
) + tuple(
    Case(f"identical_{script}_{backend}", script, (), (), backend=backend)
    for script in ("keras_mlp", "keras_cnn", "keras_small", "keras_text")
    for backend in ("torch", "jax")
    if (script, backend) != ("keras_small", "torch")  # several steps a call: not there
)
