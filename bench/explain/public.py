"""`bakeoff explain` on pairs of scripts that were written after public reports.

    python3 bench/explain/public.py [--binary build/dev/bakeoff] [--only REGEX]
        [--seconds 120] [--out public.json] [--write FOLDER]

`public/*.toml` names each pair with the address of its report, what is wrong, and an
expression that a right answer has to contain in one of its first three causes; "line":
it stands in the text of a line alone. The faster script of a pair is the slower one with
`fast.diff` (of `diff -U0`) applied; --write FOLDER writes both of each pair. Results
are kept in --out as they come: a run that was cut off goes on where it was. A quiet
machine is needed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

LINE = "one line takes most of the gap"  # it says where, and not what is wrong
HERE = Path(__file__).resolve().parent / "public"


def cases() -> list[dict[str, str]]:
    found = []
    for file in sorted(HERE.glob("*.toml")):
        found += tomllib.loads(file.read_text())["case"]
    return found


def patched(text: str, diff: str) -> str:
    """The text with the hunks of `diff -U0`."""
    lines, made, at = text.splitlines(True), [], 0
    for line in diff.splitlines(True):
        hunk = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if hunk:
            count = int(hunk[2] or 1)
            begin = int(hunk[1]) - (count > 0)  # of none: behind that line
            made += lines[at:begin]
            at = begin + count
        elif line.startswith("+"):
            made.append(line[1:])
    return "".join(made + lines[at:])


def write(name: str, folder: Path) -> None:
    """Both scripts of a pair."""
    slow = (HERE / name / "slow.py").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "slow.py").write_text(slow)
    fast = patched(slow, (HERE / name / "fast.diff").read_text())
    (folder / "fast.py").write_text(fast)


def explained(binary: Path, case: dict[str, str], seconds: int) -> dict[str, Any]:
    """What it says of the pair, and how long that took."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bakeoff_public_") as folder:
        write(case["name"], Path(folder))
        command = [str(binary), "explain", "--seconds", str(seconds), "--out", "out"]
        if "framework" in case:  # whose environment has the backend
            command += ["--framework", case["framework"]]
        done = subprocess.run(
            [*command, "slow.py", "fast.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
        )
    took = time.monotonic() - begin
    return {
        "code": done.returncode,
        "text": done.stdout,
        "said": done.stderr[-2000:],
        "s": took,
    }


def judged(case: dict[str, str], found: dict[str, Any]) -> tuple[str, str]:
    """Whether a cause says what is wrong, and the first lines of the causes."""
    text = found["text"]
    if found["code"] != 0:
        return "failed", found["said"].strip().splitlines()[-1][:100] if found[
            "said"
        ] else ""
    begins = [m.start() for m in re.finditer(r"^ [123]\. ", text, re.MULTILINE)]
    if not begins:
        line = next((one for one in text.splitlines() if "not certain: " in one), "")
        return "nothing", " ".join(text.splitlines()[0].split()) + " " + line
    causes = text[begins[0] :]
    causes = (
        causes.split("\nnot certain: ")[0].split("\nseen: ")[0].split("\nnote: ")[0]
    )
    heads = "; ".join(" ".join(text[at:].splitlines()[0].split()) for at in begins)
    parts = re.split(r"^ [0-9]+\. ", causes, flags=re.MULTILINE)[1:]
    told = [part for part in parts if not part.startswith(LINE)]
    for verdict, among in (("named", told), ("line", parts)):
        text = " ".join(" ".join(among).split())
        if re.search(case["answer"], text, re.IGNORECASE):
            return verdict, heads
    return "other", heads


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--binary", type=Path, default=Path("build/dev/bakeoff"))
    options.add_argument("--only", default="")
    options.add_argument("--seconds", type=int, default=120)
    options.add_argument("--out", type=Path)
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    kept: dict[str, Any] = {}
    if given.out and given.out.exists():
        kept = json.loads(given.out.read_text())
    counts: dict[str, int] = {}
    for case in cases():
        name = case["name"]
        if not re.search(given.only, name):
            continue
        if given.write:
            write(name, given.write / name)
            continue
        if name not in kept:
            kept[name] = explained(given.binary.resolve(), case, given.seconds)
            if given.out:
                given.out.write_text(json.dumps(kept, indent=1))
        verdict, says = judged(case, kept[name])
        counts[verdict] = counts.get(verdict, 0) + 1
        print(
            f"{verdict:8} {name:30} {kept[name]['s']:4.0f} s  {says[:150]}", flush=True
        )
    print(counts)


if __name__ == "__main__":
    main()
