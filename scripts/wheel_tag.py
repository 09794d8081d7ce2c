"""Names a wheel after the oldest glibc that it runs on.

Usage: wheel_tag.py WHEEL FOLDER
Reads every ELF file of the wheel, and writes the wheel with its platform tag, such as
manylinux_2_34_x86_64, into FOLDER; prints the path. Fails where a file needs a library
that not every Linux has, or a glibc that is newer than NEWEST_GLIBC.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

NEWEST_GLIBC = (2, 34)
# glibc's own. The C++ library is linked statically.
LIBRARIES = {
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
# What ELF files call a processor, and what tags do.
PROCESSORS = {"x64": "x86_64", "AArch64": "aarch64"}


@dataclass(frozen=True)
class Needs:
    """What one ELF file asks of the system."""

    file: str
    machine: str
    libraries: frozenset[str]
    versions: frozenset[str]  # "GLIBC_2.34"

    def glibc(self) -> tuple[int, ...]:
        numbers = [
            tuple(map(int, version.removeprefix("GLIBC_").split(".")))
            for version in self.versions
            if re.fullmatch(r"GLIBC_[\d.]+", version)
        ]
        return max(numbers, default=(2, 5))

    def faults(self) -> Iterator[str]:
        if self.machine not in PROCESSORS:
            known = " or ".join(PROCESSORS.values())
            yield f"{self.file} is for {self.machine}, not for {known}"
        for library in sorted(self.libraries - LIBRARIES):
            yield f"{self.file} needs the shared library {library}"
        for version in sorted(self.versions):
            if not version.startswith("GLIBC_"):
                yield f"{self.file} needs {version}"
        if self.glibc() > NEWEST_GLIBC:
            wanted = ".".join(map(str, NEWEST_GLIBC))
            yield (
                f"{self.file} needs glibc {'.'.join(map(str, self.glibc()))}, "
                f"newer than {wanted}: see src/base/old_glibc.cc"
            )


def needs(file: str, data: bytes) -> Needs:
    elf = ELFFile(io.BytesIO(data))
    libraries: set[str] = set()
    versions: set[str] = set()
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            libraries |= {
                tag.needed
                for tag in section.iter_tags()
                if tag.entry.d_tag == "DT_NEEDED"
            }
        if isinstance(section, GNUVerNeedSection):
            for _, wanted in section.iter_versions():
                versions |= {one.name for one in wanted}
    return Needs(
        file, elf.get_machine_arch(), frozenset(libraries), frozenset(versions)
    )


def elf_files(wheel: Path) -> list[Needs]:
    with zipfile.ZipFile(wheel) as archive:
        return [
            needs(name, data)
            for name in archive.namelist()
            if (data := archive.read(name)).startswith(b"\x7fELF")
        ]


def platform_tag(files: list[Needs]) -> str:
    newest = max(file.glibc() for file in files)
    processor = PROCESSORS[files[0].machine]
    return f"manylinux_{newest[0]}_{newest[1]}_{processor}"


def main() -> int:
    wheel, out = Path(sys.argv[1]), Path(sys.argv[2])
    files = elf_files(wheel)
    faults = [fault for file in files for fault in file.faults()]
    if not files:
        faults.append(f"{wheel.name} has no program")
    if len({file.machine for file in files}) > 1:
        faults.append(f"the programs of {wheel.name} are for different processors")
    for fault in faults:
        print(f"wheel: {fault}", file=sys.stderr)
    if faults:
        return 2
    out.mkdir(parents=True, exist_ok=True)
    tag = ["--platform-tag", platform_tag(files)]
    with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        copy = Path(folder) / wheel.name
        copy.write_bytes(wheel.read_bytes())
        command = [sys.executable, "-m", "wheel", "tags", "--remove", *tag, str(copy)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (made,) = Path(folder).glob("*.whl")
        made.replace(out / made.name)
        print(out / made.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
