"""What a script lacks to be a contender, as far as its source tells: `bakeoff check`.

    python3 -I static_check.py mine.py FRAMEWORK

Reads the source, runs none of it, and imports nothing but the standard library. Prints
one JSON object: ``problems``, each with a line, a text and a remedy; ``missing``, what
the adapter needs and the script does not define; ``lines``, those to add at its end,
with the script's own names; ``unsolved``, what it cannot write; and ``notes``. For a
framework whose scripts cannot be checked: ``known``, those whose can.
"""

from __future__ import annotations

import importlib
import json
import sys
import tokenize
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def check(path: str, framework: str) -> dict[str, Any]:
    from bakeoff_runner.source import Script

    known = [p.stem[: -len("_check")] for p in (HERE / "adapters").glob("*_check.py")]
    if framework not in known:
        return {"known": sorted(known)}
    try:
        with tokenize.open(path) as file:  # in the encoding that it states
            script = Script(file.read())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found = {
            "line": getattr(error, "lineno", None) or 1,
            "text": f"not valid Python: {getattr(error, 'msg', error)}",
            "remedy": "correct it first",
        }
        return {"problems": [found], "invalid": True}
    module = importlib.import_module(f"bakeoff_runner.adapters.{framework}_check")
    checked = module.Source(script)
    checked.import_time()
    checked.run()
    result: dict[str, Any] = checked.result()
    return result


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    print(json.dumps(check(*sys.argv[1:])))
