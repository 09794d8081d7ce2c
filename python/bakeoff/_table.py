"""What race() and translate() give: rows, and a notebook's view of a report."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Table(Sequence[Row]):
    """Rows as dicts. `attrs` holds what belongs to all of them, as in pandas."""

    def __init__(self, rows: Sequence[Row], attrs: Mapping[str, Any]) -> None:
        self.rows = [dict(row) for row in rows]
        self.attrs = dict(attrs)
        self.columns = list(self.rows[0]) if self.rows else []

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """A row by its number, or a column by its name."""
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(key)
            return [row[key] for row in self.rows]
        return self.rows[key]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def _cells(self) -> list[list[str]]:
        return [[_text(row[name]) for name in self.columns] for row in self.rows]

    def __repr__(self) -> str:
        lines = [self.columns, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            made = (f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{''.join(made)}</tr>"

        body = "".join(row(cells, "td") for cells in self._cells())
        return f"<table>{row(self.columns, 'th')}{body}</table>"


class Report:
    """The HTML report of a race; a notebook shows it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Report('{self.path}')"

    def _repr_html_(self) -> str:
        page = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" width="100%" '
            'height="700" style="border: 0"></iframe>'
        )


def table(rows: Sequence[Row], attrs: Mapping[str, Any]) -> Any:
    """A pandas DataFrame where pandas is installed."""
    try:
        import pandas
    except ImportError:
        return Table(rows, attrs)
    frame = pandas.DataFrame([dict(row) for row in rows])
    frame.attrs.update(attrs)
    return frame


def show_in_notebook(report: Report) -> None:
    """Displays the report where code runs in a notebook; elsewhere nothing happens."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if getattr(get_ipython(), "kernel", None) is not None:
        display(report)
