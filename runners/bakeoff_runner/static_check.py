"""What a script lacks to be a contender, as far as its source tells: `bakeoff check`.

    python3 -I static_check.py mine.py [FRAMEWORK]

Reads the source, runs none of it, and imports nothing but the standard library. Prints
one JSON object: ``framework``; ``known``, the frameworks whose scripts can be checked;
``problems``, each with a line, a text and a remedy; ``missing``, what the adapter needs
and the script does not define; ``lines``, those to add at its end, with the script's
own names; ``unsolved``, what it cannot write; and ``notes``.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent


def checks() -> dict[str, ModuleType]:
    """The modules ``adapters/<framework>_check.py``, by framework."""
    found = {
        path.stem[: -len("_check")]: importlib.import_module(
            f"bakeoff_runner.adapters.{path.stem}"
        )
        for path in sorted((HERE / "adapters").glob("*_check.py"))
    }
    # A script of one that builds on others imports these, too: it is asked first.
    return dict(sorted(found.items(), key=lambda item: -item[1].BUILDS_ON_OTHERS))


def packages_of(tree: ast.Module) -> set[str]:
    """What a script imports, and what it takes from it: torch, torch.nn, ..."""
    found = set()
    aliases: dict[str, str] = {}  # tf -> tensorflow
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases.update({a.asname or a.name: a.name for a in node.names})
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [f"{aliases.get(ast.unparse(node.value), '')}.{node.attr}"]
        else:
            continue
        for name in names:
            parts = name.split(".")
            found |= {".".join(parts[: n + 1]) for n in range(len(parts))}
    return found


def check(path: str, framework: str = "") -> dict[str, Any]:
    from bakeoff_runner.source import Script

    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    known = checks()
    answer = {"framework": framework, "known": list(known)}
    try:
        script = Script(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found = {
            "line": getattr(error, "lineno", None) or 1,
            "text": f"not valid Python: {getattr(error, 'msg', error)}",
            "remedy": "correct it first",
        }
        return {**answer, "problems": [found], "invalid": True}
    if not framework:
        imported = packages_of(script.tree)
        for name, module in known.items():
            if not imported.isdisjoint(module.PACKAGES):
                framework = name
                break
    if framework not in known:
        return answer
    checked = known[framework].Source(script)
    checked.import_time()
    checked.run()
    return {**answer, "framework": framework, **checked.result()}


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    print(json.dumps(check(*sys.argv[1:])))
