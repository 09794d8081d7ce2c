"""The tables of docs/import.md: every op of ATen, and every layer and operation of
Keras, that can be imported."""

from __future__ import annotations

from typing import Any, Mapping


def torch_table() -> str:
    import bakeoff_import.complexes
    import bakeoff_import.layers
    import bakeoff_import.noise
    import bakeoff_import.places  # noqa: F401
    from bakeoff_import.rows import ROWS

    return _table("ATen", ROWS)


def keras_table() -> str:
    import bakeoff_import.keras_layers
    import bakeoff_import.keras_ops
    import bakeoff_import.keras_recurrent  # noqa: F401
    from bakeoff_import.keras_walk import LAYERS, OPERATIONS

    layers = _table("Layer of Keras", LAYERS)
    return layers + "\n" + _table("`keras.ops`, by its class", OPERATIONS)


def _table(title: str, rows: Mapping[str, Any]) -> str:
    """Markdown: what becomes the same in one line, in the order of the table."""
    lines: dict[str, list[str]] = {}
    for name, row in rows.items():
        meaning = (row.__doc__ or "").strip().splitlines()[0]
        short = name.removeprefix("bakeoff.")
        if meaning.replace("_", "") == f"`{short.lower()}`".replace("_", ""):
            meaning = "the op of this name"
        lines.setdefault(meaning, []).append(f"`{short}`")
    text = "".join(
        f"| {', '.join(names)} | {what} |\n" for what, names in lines.items()
    )
    return f"| {title} | becomes |\n|---|---|\n{text}"
