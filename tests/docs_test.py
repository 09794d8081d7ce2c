"""Links of the documents: each leads somewhere, and every document can be reached from README.md.

Run alone: python3 tests/docs_test.py
"""

from __future__ import annotations

import re
import runpy
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
START = "README.md"
CODE = re.compile(r"^ *(```|~~~).*?^ *\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?[^)]*\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)
# A document that a source, a script or a message names: "docs/verdicts.md".
NAMED = re.compile(r"(?<![\w/:.])docs/[\w/]+\.md\b")
# A file or folder of this repository that a document names: `src/parity/proof.h`.
PATH = re.compile(
    r"`((?:src|runners|tests|prove|bench|scripts|envs|recipes|docs)/[\w./-]*\w/?)`"
)
# A column of a table, from its first designated field on, with one level of braces in it; and its titles.
COLUMN = re.compile(
    r"[{(]\s*\{\s*\.(?:key|title|csv)\b(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
)
TITLE = re.compile(r'\.(?:range_)?title =\s*"([^"]+)"')
GPU_COLUMN = re.compile(r'\bgpu\("\w+", "([^"]+)"')
HISTORY = "CHANGELOG.md"  # names what was there once
SOURCES = ("src", "prove", "runners", "scripts", "bench", "tests", "recipes", "cmake")


def documents(root: Path) -> list[Path]:
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def links(text: str) -> Iterator[tuple[int, str]]:
    """Line and target of every link to a file or a heading; those of code and to the web are left out."""
    plain = CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for match in LINK.finditer(plain):
        target = unquote(match[1])
        if not re.match(r"[a-z][a-z+.-]*:", target):
            yield plain.count("\n", 0, match.start()) + 1, target


def anchors(text: str) -> set[str]:
    """The names by which GitHub links to the headings."""
    names = set()
    for title in HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()
        names.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return names


def dead_links(root: Path) -> list[str]:
    faults = []
    for document in documents(root):
        text = document.read_text(encoding="utf-8")
        for line, target in links(text):
            path, _, anchor = target.partition("#")
            file = (document.parent / path) if path else document
            where = f"{document.relative_to(root)}:{line}"
            if not file.exists():
                faults.append(f"{where}: there is no '{target}'")
            elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
                faults.append(f"{where}: '{file.name}' has no heading '{anchor}'")
    return faults


def unreachable(root: Path) -> list[str]:
    """Documents to which no chain of links leads from README.md."""
    reached, to_read = set(), [root / START]
    while to_read:
        document = to_read.pop()
        if document in reached or not document.exists():
            continue
        reached.add(document)
        for _, target in links(document.read_text(encoding="utf-8")):
            file = (document.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md":
                to_read.append(file)
    return [
        f"{document.relative_to(root)}: no link leads to it from {START}"
        for document in documents(root)
        if document not in reached
    ]


def unknown_names(root: Path) -> list[str]:
    """Documents that sources name and that do not exist."""
    faults = []
    files = [root / "Makefile", root / "CMakeLists.txt"]
    for folder in SOURCES:
        files += [f for f in (root / folder).rglob("*") if f.is_file()]
    for file in files:
        if file.name == Path(__file__).name or not file.exists():
            continue
        text = file.read_text(encoding="utf-8", errors="ignore")
        faults += [
            f"{file.relative_to(root)}: there is no '{name}'"
            for name in sorted(set(NAMED.findall(text)))
            if not (root / name).exists()
        ]
    return faults


def unknown_paths(root: Path) -> list[str]:
    """Files and folders that documents name and that do not exist."""
    return [
        f"{document.relative_to(root)}: there is no '{name}'"
        for document in documents(root)
        if document.name != HISTORY
        for name in sorted(set(PATH.findall(document.read_text(encoding="utf-8"))))
        if not (root / name).exists()
    ]


def columns(root: Path) -> set[str]:
    """The titles of the columns of all tables, as far as they are written out."""
    titles = set()
    for file in (root / "src").rglob("*.cc"):
        text = file.read_text(encoding="utf-8")
        if not file.name.endswith("_test.cc"):
            titles |= {t for c in COLUMN.findall(text) for t in TITLE.findall(c)}
            titles |= set(GPU_COLUMN.findall(text))
    return titles


def words(root: Path) -> set[str]:
    """The words of the glossary."""
    text = (root / "docs/glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    found = {word.strip().strip("`") for row in rows for word in row.split(",")}
    return found | {word + "s" for word in found}  # `bakeoff help` takes them too


class Documents(unittest.TestCase):
    def test_the_glossary_has_every_column_of_a_table(self) -> None:
        found = columns(ROOT)
        self.assertGreater(len(found), 80)
        # `samples/` has the currency of the recipe behind it.
        self.assertEqual(sorted(found - words(ROOT) - {"samples/", "at "}), [])

    def test_the_figure_of_verdicts_shows_the_measured_tables(self) -> None:
        drawn = runpy.run_path(str(ROOT / "scripts/verdict_figure.py"))["figure"]
        text = (ROOT / "docs/measured/verdicts.md").read_text(encoding="utf-8")
        svg = (ROOT / "docs/images/verdicts.svg").read_text(encoding="utf-8")
        self.assertEqual(svg, drawn(text), "run: python3 scripts/verdict_figure.py")

    def test_every_link_leads_somewhere(self) -> None:
        self.assertEqual(dead_links(ROOT), [])

    def test_every_document_is_reached_from_the_readme(self) -> None:
        self.assertEqual(unreachable(ROOT), [])

    def test_files_that_documents_name_exist(self) -> None:
        self.assertEqual(unknown_paths(ROOT), [])

    def test_documents_that_sources_name_exist(self) -> None:
        self.assertEqual(unknown_names(ROOT), [])


class Rules(unittest.TestCase):
    """The checks themselves, on a small tree with one fault at a time."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.write("README.md", "# Start\n[a](docs/a.md)\n")
        self.write(
            "docs/a.md", "# A b, c\n[up](../README.md#start) [web](https://x.y)\n"
        )

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def test_a_sound_tree_has_no_fault(self) -> None:
        self.assertEqual(dead_links(self.root), [])
        self.assertEqual(unreachable(self.root), [])

    def test_a_missing_file_is_found(self) -> None:
        self.write("docs/a.md", "\nsee ![a plot](images/none.svg)\n")
        self.assertEqual(
            dead_links(self.root), ["docs/a.md:2: there is no 'images/none.svg'"]
        )

    def test_a_missing_heading_is_found(self) -> None:
        self.write(
            "README.md", "# Start\n[good](docs/a.md#a-b-c) [bad](docs/a.md#a-b)\n"
        )
        self.assertEqual(
            dead_links(self.root), ["README.md:2: 'a.md' has no heading 'a-b'"]
        )

    def test_code_is_no_link(self) -> None:
        self.write("docs/a.md", "`v[i](none.md)`\n\n```\n[x](none.md)\n```\n")
        self.assertEqual(dead_links(self.root), [])

    def test_a_document_that_only_itself_links_to_is_found(self) -> None:
        self.write("docs/measured/b.md", "[b](b.md)\n")
        self.assertEqual(
            unreachable(self.root),
            ["docs/measured/b.md: no link leads to it from README.md"],
        )

    def test_a_file_that_a_document_invents_is_found(self) -> None:
        self.write("src/a.h", "")
        self.write("docs/a.md", "`src/a.h`, `src/`, `src/b.h`, `src/<room>/c.h`\n")
        self.assertEqual(unknown_paths(self.root), ["docs/a.md: there is no 'src/b.h'"])

    def test_a_column_that_nothing_explains_is_found(self) -> None:
        self.write(
            "src/a.cc",
            '{{.key = "a", .csv = {{"a", "/b"}}, .title = "cold", .range_title = "c"}, x}\n'
            '{{.title = "wait"}, x}, Section s{.key = "s", .title = "A table"};\n',
        )
        self.write("docs/glossary.md", "| word | x |\n|---|---|\n| wait, c | y |\n")
        self.assertEqual(columns(self.root) - words(self.root), {"cold"})

    def test_a_document_that_a_source_invents_is_found(self) -> None:
        self.write("src/a.cc", '"see docs/a.md", "see docs/b.md"\n')
        self.assertEqual(
            unknown_names(self.root), ["src/a.cc: there is no 'docs/b.md'"]
        )


if __name__ == "__main__":
    unittest.main()
