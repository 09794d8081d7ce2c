"""The proof of the scenario "generate", the same for every adapter."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Iterator

from bakeoff_runner.arrays import Array

__all__ = ["GENERATION_NAMES", "prove_generation", "word_request"]

# What a script that generates has to offer besides, in every idiom.
GENERATION_NAMES = {"generate": "generate(model, words, choose)"}


def prove_generation(
    script: ModuleType, model: Any, words: Any, to_host: Callable[[Any], Array]
) -> dict[str, Array]:
    """By the steps that are timed: ``output``, the logits for the words of the data
    that follow the prompt, each read in its turn (N, words, vocabulary); and ``words``,
    what is chosen freely (N, words).
    """
    import numpy as np

    logits: list[Array] = []

    def follow(seen: Any) -> Any:
        logits.append(to_host(seen))
        return words[:, script.PROMPT + len(logits) - 1]

    for _ in script.generate(model, words, follow):
        pass
    chosen = to_host(script.predict_step(model, words)).astype(np.float64)
    return {"output": np.stack(logits, axis=1), "words": chosen}


def word_request(
    script: ModuleType,
    model: Any,
    batches: Iterator[Any],
    barrier: Callable[[Any], None],
) -> Callable[[], None]:
    """One word of every answer a call; after the last one the next prompts follow.

    So the first of each WORDS calls reads the prompts.
    """
    answer: Iterator[Any] = iter(())

    def one() -> None:
        nonlocal answer
        word = next(answer, None)
        if word is None:
            answer = script.generate(model, *next(batches))
            word = next(answer)
        barrier(word)

    return one
