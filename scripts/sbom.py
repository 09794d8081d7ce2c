"""sbom.py WHEEL OUT: writes the parts of the wheel's program as CycloneDX 1.6.

The program links Debian's libraries statically: these are the -dev packages of scripts/packages.txt, with the versions
installed here, but for those of tests and Python.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import uuid
from pathlib import Path

PACKAGES = Path(__file__).resolve().parent / "packages.txt"
NOT_LINKED = {"libgmock-dev", "libgtest-dev", "librapidcheck-dev", "python3-dev"}
COMPILER = "libstdc++-12-dev"


def linked() -> list[str]:
    names = [
        line.split()[1]
        for line in PACKAGES.read_text().splitlines()
        if line.startswith("build ")
    ]
    return sorted({n for n in names if n.endswith("-dev")} - NOT_LINKED | {COMPILER})


def component(package: str) -> dict[str, object]:
    asked = ["dpkg-query", "-W", "-f", "${Version} ${source:Package}", package]
    version, source = subprocess.run(
        asked, check=True, capture_output=True, text=True
    ).stdout.split()
    purl = f"pkg:deb/debian/{package}@{version}?distro=debian-12"
    return {
        "type": "library",
        "name": source,
        "version": version,
        "purl": purl,
        "bom-ref": purl,
    }


def document(wheel: Path) -> dict[str, object]:
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    program = {
        "type": "application",
        "name": name,
        "version": version,
        "bom-ref": name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "metadata": {"component": program},
        "components": [component(package) for package in linked()],
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(
        json.dumps(document(Path(sys.argv[1])), indent=2) + "\n"
    )
