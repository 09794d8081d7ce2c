"""What a training loop calls again and again: one step, or several in one call."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Sequence

from bakeoff_runner.adapter import Array


class Calls:
    """``train_step`` of a script; ``train_steps`` where it sets ``STEPS_PER_CALL``."""

    def __init__(self, script: ModuleType) -> None:
        self._script = script
        self.steps: int = getattr(script, "STEPS_PER_CALL", 1)  # of one call
        self.name = "train_step" if self.steps == 1 else "train_steps"

    @property
    def function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._script, self.name)
        return function

    def count(self, steps: int) -> int:
        """Calls that make at least so many steps."""
        return -(-steps // self.steps)

    def batches(self, given: Sequence[Any]) -> list[list[Array]]:
        """The batches that one call reads from what the iterator gave for it.

        For one step that is the batch. For several it is a stack of them, or where a
        number follows all batches of the data, from that one on.
        """
        import numpy as np

        if self.steps == 1:
            return [[np.asarray(array) for array in given]]
        arrays = [np.asarray(array) for array in given]
        first = 0
        if arrays[-1].ndim == 0:
            first = int(arrays.pop())
        turns = [(first + step) % len(arrays[0]) for step in range(self.steps)]
        return [[array[turn] for array in arrays] for turn in turns]

    def effective(self) -> dict[str, int]:
        return {"steps_per_call": self.steps, "steps_per_mark": self.steps}


def losses_of(result: Any) -> Array:
    """The losses that one call gave: one, or one a step."""
    import numpy as np

    return np.ravel(result)
