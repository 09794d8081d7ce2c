"""verdict_figure.py: writes docs/images/verdicts.svg from the tables of docs/measured/verdicts.md.

A bar is the mean of a row over the kinds of noise; the line reaches to the worst kind.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
# The table, its title, and the place of its worst value in ascending order.
PANELS = (
    ("false verdicts", "Two identical programs called different", -1),
    ("found 5%", "A slowdown of 5% found", 0),
)
LEFT, WIDTH, GAP, TOP, ROW = 190, 240, 60, 52, 22
OURS, OTHERS, INK = "#1b7f4d", "#9aa4ae", "#333"


def rows(text: str, name: str) -> dict[str, list[float]]:
    """The percentages of each rule."""
    table = re.search(rf"<!-- {name} -->\n(.*?)<!-- end", text, re.DOTALL)
    assert table, name
    cells = [[c.strip() for c in r.split("|")[1:-1]] for r in table[1].split("\n")]
    return {c[0]: [float(n) for n in c[2:]] for c in cells[2:] if c}


def panel(left: int, title: str, worst: int, found: dict[str, list[float]]) -> str:
    bottom = TOP + ROW * len(found)
    out = f"<text x='{left}' y='20' font-weight='bold'>{escape(title)}</text>\n"
    for share in (0, 25, 50, 75, 100):
        x = left + WIDTH * share / 100
        out += f"<line x1='{x}' x2='{x}' y1='{TOP - 8}' y2='{bottom}' stroke='#ddd'/>"
        out += f"<text x='{x}' y='{TOP - 14}' text-anchor='middle'>{share}%</text>\n"
    for i, (rule, values) in enumerate(found.items()):
        y, mean = TOP + ROW * i, sum(values) / len(values)
        bar, far = WIDTH * mean / 100, left + WIDTH * sorted(values)[worst] / 100
        colour = OURS if rule.startswith("Bakeoff") else OTHERS
        out += (
            f"<rect x='{left}' y='{y}' width='{bar:.1f}' height='14' fill='{colour}'/>"
        )
        out += f"<line x1='{left + bar:.1f}' x2='{far:.1f}' y1='{y + 7}' y2='{y + 7}' stroke='{INK}'/>"
        out += f"<line x1='{far:.1f}' x2='{far:.1f}' y1='{y + 2}' y2='{y + 12}' stroke='{INK}'/>\n"
    return out


def figure(text: str) -> str:
    names = list(rows(text, PANELS[0][0]))
    width, height = LEFT + 2 * WIDTH + GAP + 30, TOP + ROW * len(names) + 10
    out = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
    out += f"font-family='sans-serif' font-size='11' fill='{INK}'>\n"
    out += f"<rect width='{width}' height='{height}' fill='white'/>\n"
    for i, name in enumerate(names):
        weight = "bold" if name.startswith("Bakeoff") else "normal"
        y = TOP + ROW * i + 11
        out += f"<text x='{LEFT - 8}' y='{y}' text-anchor='end' font-weight='{weight}'>{escape(name)}</text>\n"
    for i, (name, title, worst) in enumerate(PANELS):
        out += panel(LEFT + i * (WIDTH + GAP), title, worst, rows(text, name))
    return out + "</svg>\n"


if __name__ == "__main__":
    measured = (DOCS / "measured/verdicts.md").read_text(encoding="utf-8")
    (DOCS / "images/verdicts.svg").write_text(figure(measured), encoding="utf-8")
