"""How long a function may be, and who may know a framework by its name.

Run alone: python3 tests/house_test.py
"""

from __future__ import annotations

import ast
import re
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 60  # lines, from the first of its signature to its closing brace
# What holds no code, or whose braces are none: raw strings, strings, characters, comments, directives.
BLANKED = re.compile(
    r'R"([^(\s]*)\(.*?\)\1"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*.*?\*/"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()=]*$")
OPERATOR = re.compile(r"\boperator\s*[^\s\w(]+")
TEMPLATE = re.compile(r"\btemplate\s*<[^;{}()]*>")


@dataclass(frozen=True)
class Function:
    """Its lines, counted from 1, and the text before its opening brace."""

    first: int
    last: int
    head: str

    @property
    def lines(self) -> int:
        return self.last - self.first + 1


def blanked(text: str) -> str:
    """The text with spaces for what holds no code; lines stay where they are."""
    return BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def flat(head: str) -> str:
    """A statement so far, without what stands in its parentheses."""
    flat = TEMPLATE.sub("", OPERATOR.sub("operator", head))
    while (less := re.sub(r"\([^()]+\)", "()", flat)) != flat:
        flat = less
    return flat


def opens_function(head: str) -> bool:
    """Whether the brace behind `head` opens the body of a function."""
    return "()" in flat(head) and "=" not in flat(head)


def functions(text: str) -> Iterator[Function]:
    """Every function of a C++ source that is defined outside of another one."""
    code = blanked(text)
    start = 0  # of the statement at hand
    opened = 0  # its last outer brace
    depth = 0  # of braces within it
    parentheses = 0
    for at, char in enumerate(code):
        if depth == 0:
            parentheses += (char == "(") - (char == ")")
        if parentheses == 0 and depth == 0 and char in ";}":
            start = at + 1
        elif char == "{":
            head = code[start:at]
            if depth == 0 and parentheses == 0 and SCOPE.search(flat(head)):
                start = at + 1  # its members are read as if they stood outside
            else:
                opened = at if depth == 0 else opened
                depth += 1
        elif char == "}" and depth > 0:
            depth -= 1
            behind = code[at + 1 :].lstrip()[:1]
            if depth > 0 or parentheses > 0 or behind in (",", "{", ";", ")"):
                continue  # `a_{1}, b_{2} {`: the body is still to come
            head = code[start:opened]
            if opens_function(head):
                begin = start + len(code[start:at]) - len(code[start:at].lstrip())
                first, last = (code.count("\n", 0, i) + 1 for i in (begin, at))
                yield Function(first, last, " ".join(head.split()))
            start = at + 1


def is_table(lines: list[str]) -> bool:
    """A function that does nothing but return rows: `return {...};`."""
    code = blanked("\n".join(lines))
    body = code[code.index("{") + 1 : code.rindex("}")]
    depth = statements = 0
    for char in body:
        depth += (char in "{(") - (char in "})")
        statements += char == ";" and depth == 0
    return body.split()[0] == "return" and statements == 1


def too_long(root: Path) -> list[str]:
    faults = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        text = path.read_text(encoding="utf-8")
        for function in functions(text):
            lines = text.splitlines()[function.first - 1 : function.last]
            if function.lines > LONGEST and not is_table(lines):
                place = f"{path.relative_to(root)}:{function.first}"
                faults.append(f"{place}: {function.lines} lines: {function.head}")
    return faults


LISTED = re.compile(r"&(\w+)_framework\(\)")
# Files that may name a framework outside of its own folder, and why.
MAY_NAME = {
    "src/causes/explain.cc": "tells a reader how another framework writes a number",
    "src/cli/check.cc": "scripts of these can be contenders",
    "src/cli/exec.cc": "an example of a command",
    "src/cli/history.cc": "an example of a command",
    "src/cli/import.cc": "names the environment that computes ONNX files",
    "src/cli/shared_options.cc": "examples of a contender's id",
    "src/cli/sources.cc": "an example of a command",
    "src/cli/suite.cc": "an example of a command",
    "src/emit/CMakeLists.txt": "torch_rules.cc is shared by both front ends of torch",
    "src/environments/config.cc": "an example of a section",
    "src/explain/CMakeLists.txt": "each framework's rules are a file of its own",
    "src/explain/rules/common.cc": "functions by the names that they have in Python",
    "src/explain/rules/lines.cc": "calls of the user's lines, by the names that they have there",
    "src/explain/rules/otherwise.cc": "what scripts write, and remedies, as in lines.cc",
    "src/explain/rules/ops.cc": "ops, by the names that profilers give them",
    "src/ir/elementwise.cc": "a row of an op has its spelling in every framework",
    "src/ir/spelled_ops.cc": "the same for ops over axes",
    "src/ir/op_table.cc": "cites whose convention an attribute follows",
    "src/onnx/rows_resize.cc": "a coordinate rule of ONNX has the name in its own",
    "src/onnx/tensors.cc": "tells files of an exporter by its name",
    "src/worker/compiled_contender.cc": "compiles the one runner that is no Python",
    "src/worker/CMakeLists.txt": "embeds that runner",
}
# Names that are ordinary words too: they count where they stand alone.
WORDS = {"native"}
LITERAL = re.compile(
    r'R"([^(\s]*)\((?P<raw>.*?)\)\1"'
    r'|"(?P<plain>(?:\\.|[^"\\\n])*)"'
    r"|'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)


def frameworks(root: Path) -> list[str]:
    """Names, of the one list of frameworks."""
    listed = (root / "src/emit/all/frameworks.cc").read_text(encoding="utf-8")
    return LISTED.findall(listed)


def cpp_texts(text: str) -> Iterator[tuple[int, str]]:
    """Lines, counted from 1, and the string literals there; paths of includes, too."""
    for match in LITERAL.finditer(text):
        found = match["raw"] or match["plain"]
        if found:
            yield text.count("\n", 0, match.start()) + 1, found


def cmake_texts(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield number, line.partition("#")[0]


def python_texts(text: str) -> Iterator[tuple[int, str]]:
    """String literals that are no docstrings."""
    nodes = list(ast.walk(ast.parse(text)))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in alone:
            yield node.lineno, str(node.value)


def shared_texts(root: Path) -> Iterator[tuple[str, int, str]]:
    """File, line and text of everything that all frameworks share."""
    own = {f"{name}.cc" for name in frameworks(root)}
    for path in sorted((root / "src").rglob("*")):
        file = path.relative_to(root)
        if path.name in own:
            continue  # a framework's own file in a room of all
        is_test = path.stem.endswith(("_test", "testing")) or "testing" in file.parts
        if is_test or file.parts[:2] == ("src", "emit") and len(file.parts) > 3:
            continue  # a framework's folder, and the list of them
        if path.suffix in (".h", ".cc"):
            texts = cpp_texts(path.read_text(encoding="utf-8"))
        elif path.name == "CMakeLists.txt":
            texts = cmake_texts(path.read_text(encoding="utf-8"))
        else:
            continue
        yield from ((str(file), line, text) for line, text in texts)
    for path in sorted((root / "runners/bakeoff_runner").glob("*.py")):
        for line, text in python_texts(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(root)), line, text


def namings(root: Path) -> dict[str, list[str]]:
    """Where frameworks are named in what they share, by file."""
    listed = [
        rf"^{re.escape(name)}$" if name in WORDS else re.escape(name)
        for name in frameworks(root)
    ]
    names = re.compile("|".join(listed), re.IGNORECASE)
    found: dict[str, list[str]] = {}
    for file, line, text in shared_texts(root):
        if file.startswith("src/emit/") and text.startswith("emit/"):
            continue  # emitters' includes are layers_test.py's business
        if name := names.search(text):
            found.setdefault(file, []).append(f"{file}:{line}: {name[0]}")
    return found


class TheNames(unittest.TestCase):
    def test_a_framework_is_named_in_its_own_folder_alone(self) -> None:
        found = namings(ROOT)
        faults = [line for file in found.keys() - MAY_NAME for line in found[file]]
        self.assertEqual(faults, [], "make it a field of emit::Framework")
        self.assertEqual(found.keys(), MAY_NAME.keys(), "an exception without need")

    def test_names_are_found(self) -> None:
        self.assertIn("torch", frameworks(ROOT))
        sources = {
            "src/emit/all/frameworks.cc": "&torch_framework(), &jax_framework()",
            "src/emit/torch/torch.cc": 'f("torch");',
            "src/emit/emit.h": '#include "emit/torch_rules.h"  // "torch"\n',
            "src/plan/a.cc": '// "jax"\n\nf("the JAX of it", \'"\', R"(jax)");\n',
            "src/plan/a_test.cc": 'f("jax");',
            "src/plan/b.cc": '#include "emit/jax/jax.h"\n',
            "src/plan/CMakeLists.txt": "# jax\nset(a torch.txt)\n",
            "runners/bakeoff_runner/a.py": '"""jax"""\nimport jax\nx = {"jax": 1}\n',
            "runners/bakeoff_runner/adapters/jax_adapter.py": 'x = "jax"',
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, text in sources.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = namings(Path(folder))
        self.assertEqual(
            sorted(line for lines in found.values() for line in lines),
            [
                "runners/bakeoff_runner/a.py:3: jax",
                "src/plan/CMakeLists.txt:2: torch",
                "src/plan/a.cc:3: JAX",
                "src/plan/a.cc:3: jax",
                "src/plan/b.cc:1: jax",
            ],
        )


class TheRepository(unittest.TestCase):
    def test_no_function_is_too_long(self) -> None:
        self.assertEqual(too_long(ROOT), [])

    def test_it_is_really_read(self) -> None:
        sources = [path.read_text(encoding="utf-8") for path in ROOT.glob("src/*/*.cc")]
        self.assertGreater(sum(len(list(functions(text))) for text in sources), 2000)


def sizes(text: str) -> list[tuple[str, int]]:
    return [(f.head, f.lines) for f in functions(text)]


class PlantedFunctions(unittest.TestCase):
    """The test itself, tried on sources."""

    def test_one_too_many_lines_are_caught(self) -> None:
        for lines, faults in ((LONGEST, 0), (LONGEST + 1, 1)):
            text = (
                "namespace a {\n\nint f(int x) {\n"
                + "  g();\n" * (lines - 2)
                + "}\n\n}\n"
            )
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "src" / "room" / "a.cc"
                path.parent.mkdir(parents=True)
                path.write_text(text, encoding="utf-8")
                found = too_long(Path(folder))
            self.assertEqual(len(found), faults)
            for fault in found:
                self.assertIn(f"src/room/a.cc:3: {lines} lines: int f(int x)", fault)

    def test_a_signature_counts(self) -> None:
        text = "// Why.\ntemplate <typename T = int>\nint f(T a,\n      int b) {\n}\n"
        self.assertEqual(sizes(text)[0][1], 4)

    def test_members_are_functions(self) -> None:
        text = """
struct S : T {
  S(int a, int b)
      : a_{a}, b_(b) {
    g();
  }
  bool operator==(const S&) const {
    return true;
  }
  int a_ = 1, b_{2};
};
"""
        self.assertEqual([lines for _, lines in sizes(text)], [4, 3])

    def test_tables_and_texts_are_no_functions(self) -> None:
        text = """
RECORD(S, a)
namespace {
const Row kRows[] = {
    {f(1), [](int x) {
       return x;
     }},
};
constexpr const char* kText = R"x(int f() {
)x";
int f(std::string a = "{", char b = '{', std::vector<int> c = {}) {  // {
  return 1'000;
}
#define G(x) int g() { \\
    return x; }
}
"""
        self.assertEqual(len(sizes(text)), 1)
        self.assertEqual(sizes(text)[0][1], 3)


if __name__ == "__main__":
    unittest.main()
