"""Compiles headers alone, each with the warnings of the build: headers.py HEADER...

Only those that the last 60 commits or the working tree changed: a machine that has
compiled none would take four minutes for all. One that no longer compiles because what
it includes has changed is seen at night. A header that compiled is not compiled
again while it, what it includes of this repository, the compiler and its options are
the same: $BAKEOFF_HOME/stamps/headers.txt has the SHA-256 of these.
With BAKEOFF_NO_STAMPS=1, as every night, every header is compiled.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
COMPILE = ["g++", "-std=c++20", "-Isrc", "-I.", "-fsyntax-only", "-Wall", "-Wextra"]
COMPILE += ["-Wpedantic", "-Wshadow", "-Werror", '-DBAKEOFF_SOURCE_DIR="."']
COMPILE += ["-x", "c++", "-include"]
COMMITS = 60  # more than a merge has


def stamps_file() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    home = Path(os.environ.get("BAKEOFF_HOME") or Path(data) / "bakeoff")
    return home / "stamps" / "headers.txt"


@cache
def includes(path: Path) -> frozenset[Path]:
    """Files of this repository that a file includes itself."""
    found = set()
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for folder in (path.parent, ROOT / "src", ROOT):
            if (folder / name).is_file():
                found.add((folder / name).resolve())
                break
    return frozenset(found)


@cache
def digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def stamp(header: Path, compiler: str) -> str:
    """What the result of compiling a header alone depends on."""
    seen: set[Path] = set()
    ahead = {header}
    while ahead:
        seen |= ahead
        ahead = {file for path in ahead for file in includes(path)} - seen
    whole = hashlib.sha256(" ".join([compiler, *COMPILE]).encode())
    for path in sorted(seen):
        whole.update(f"{path.relative_to(ROOT)}\0".encode() + digest(path))
    return whole.hexdigest()


def changed() -> set[str]:
    """Files that the last commits or the working tree changed; of a shallow clone all."""
    names: set[str] = set()
    for words in (
        ["log", f"-{COMMITS}", "--format=", "--name-only"],
        ["diff", "--name-only", "HEAD"],
        ["ls-files", "--others", "--exclude-standard"],
    ):
        said = subprocess.check_output(["git", *words], cwd=ROOT, text=True)
        names.update(said.splitlines())
    return names


def compiles(header: str) -> bool:
    return subprocess.run([*COMPILE, header, "/dev/null"], cwd=ROOT).returncode == 0


def main() -> int:
    compiler = subprocess.check_output(["g++", "--version"], text=True)
    file = stamps_file()
    known = set(file.read_text().split()) if file.exists() else set()
    stamps = {name: stamp((ROOT / name).resolve(), compiler) for name in sys.argv[1:]}
    new = list(stamps)
    if not os.environ.get("BAKEOFF_NO_STAMPS"):
        new = [n for n in changed() if n in stamps and stamps[n] not in known]
    with ThreadPoolExecutor(int(os.environ.get("BAKEOFF_JOBS", 1))) as pool:
        bad = [
            n for n, good in zip(new, pool.map(compiles, new), strict=True) if not good
        ]
    good = {s for name, s in stamps.items() if s in known or name in new}
    good -= {stamps[name] for name in bad}
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.with_suffix(f".{os.getpid()}")
    whole.write_text("".join(f"{one}\n" for one in sorted(good)))
    whole.replace(file)
    print(f"{len(new)} of {len(stamps)} headers compiled alone, {len(bad)} do not")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
