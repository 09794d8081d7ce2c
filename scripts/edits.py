"""Texts under headings, and edits of other texts, written so that a reader sees what changes.

A file is a row of sections; what stands before the first heading is a comment:

    == wrong mlp beta2 ? betas? .*0\\.99     a heading, whose words its reader knows
    ~ 0.999) => 0.99)                       a part of a line becomes another one
    ~ F.cross_entropy(model(x), y)          the same where one line would be too long
    => F.cross_entropy(model(x) / 1.01, y)
         loss.backward()                    whole lines as in a diff: those after a space
    -    optimizer.step()                   stay, those after - go, those after + come
    +    optimizer.step(); optimizer.step()
    @@own_adam p.sub_(m)                    the lines of the section `def own_adam`, with
                                            p.sub_(m) in the place of its $

A blank line, and a - right after a +, begins another edit. Lines that begin with # are
comments; in sections that are no edits only those right below the heading are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

Edit = tuple[str, str]  # what stands in a text exactly once, and what replaces it

PART = re.compile(r"~ (.*?) =>(?: (.*))?")


def sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading but those of `def`, which stand where @@ names them."""
    found: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    for section in re.split(r"(?m)^== ", text)[1:]:
        title, *below = section.rstrip("\n").split("\n")
        lines: list[str] = []
        for line in below:
            if line.startswith("@@"):
                name, _, argument = line[2:].partition(" ")
                lines += [part.replace("$", argument) for part in parts[f"def {name}"]]
            else:
                lines.append(line)
        of = parts if title.startswith("def ") else found
        if title in of:
            raise ValueError(f"two sections are called {title}")
        of[title] = lines
    return found


def edits(lines: Iterable[str]) -> tuple[Edit, ...]:
    """What the lines of one section say."""
    made: list[Edit] = []
    hunk: list[str] = []

    def close() -> None:
        if hunk:
            old, new = (
                "".join(line[1:] + "\n" for line in hunk if line[0] != without)
                for without in "+-"
            )
            made.append((old, new))
            hunk.clear()

    lines = iter(lines)
    for line in lines:
        if line.startswith("~ ") or not line or line[0] == "#":
            close()
        if line.startswith("~ "):
            whole = line if " =>" in line else f"{line} {next(lines, '')}"
            part = PART.fullmatch(whole)
            if part is None:
                raise ValueError(f"no '~ old => new': {whole}")
            made.append((part[1], part[2] or ""))
        elif line and line[0] in " -+":
            if line[0] == "-" and hunk and hunk[-1][0] == "+":
                close()
            hunk.append(line)
        elif line and line[0] != "#":
            raise ValueError(f"a line begins with ~, -, +, @@, # or a space: {line}")
    close()
    return tuple(made)


def read(path: Path, words: dict[str, str] | None = None) -> dict[str, list[str]]:
    """The sections of a file. `words` are replaced in all of it first."""
    text = path.read_text()
    for old, new in (words or {}).items():
        text = text.replace(old, new)
    return sections(text)


def codes(path: Path) -> dict[str, str]:
    """Sections that are code, by heading."""
    found = {}
    for title, lines in read(path).items():
        while lines and lines[0].startswith("# "):
            lines.pop(0)
        found[title] = "\n".join(lines) + "\n"
    return found


def edited(text: str, changes: Iterable[Edit], name: str) -> str:
    """The text with every edit made, each of what the ones before have left."""
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{name}: {old!r} stands {text.count(old)} times")
        text = text.replace(old, new)
    return text
