"""A PostgreSQL server of the tests' own, on a unix socket in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

# Debian keeps the server's programs out of PATH.
BIN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class Server:
    """Running from start() to stop(); the data stays until close()."""

    def __init__(self) -> None:
        found = shutil.which("postgres")
        self.bin = BIN[-1] if BIN else Path(found).parent if found else None
        if self.bin is None:
            if os.environ.get("BAKEOFF_REQUIRE_ENVS"):
                raise AssertionError("there is no PostgreSQL server")
            raise unittest.SkipTest("there is no PostgreSQL server")
        # The path of a socket is short.
        self.folder = Path(tempfile.mkdtemp(prefix="bakeoff_pg_", dir="/tmp"))
        self.user = "postgres" if os.geteuid() == 0 else ""
        if self.user:
            shutil.chown(self.folder, self.user, self.user)
        self.process: subprocess.Popen[bytes] | None = None
        self.data = self.folder / "data"
        self.call("initdb", "-D", self.data, "-U", "bakeoff", "--no-sync", "-E", "UTF8")

    def command(self, program: str, *arguments: str | Path) -> list[str]:
        assert self.bin is not None
        words = [str(self.bin / program), *map(str, arguments)]
        if not self.user:  # the server refuses to run as root
            return words
        ids = [f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        return ["setpriv", *ids, *words]

    def call(self, program: str, *arguments: str | Path) -> str:
        done = subprocess.run(
            self.command(program, *arguments),
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C", "HOME": str(self.folder)},
        )
        if done.returncode != 0:
            raise AssertionError(f"{program}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(
                    "postgres", "-D", self.data, "-k", self.folder, "-c",
                    "listen_addresses=", "-c", "fsync=off", "-c", "log_min_messages=fatal",
                ),
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )  # fmt: skip
        end = time.monotonic() + 600
        while True:
            try:
                self.sql("SELECT 1", "postgres")
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def stop(self, how: str = "immediate") -> None:
        if self.process is None:
            return
        self.call("pg_ctl", "stop", "-D", self.data, "-m", how)
        self.process.wait()
        self.process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statement: str, database: str) -> str:
        return self.call(
            "psql", "-h", self.folder, "-U", "bakeoff", "-d", database,
            "-v", "ON_ERROR_STOP=1", "-A", "-t", "-q", "-c", statement,
        )  # fmt: skip

    def new_database(self, name: str) -> str:
        """Its address."""
        self.sql(f'CREATE DATABASE "{name}"', "postgres")
        return f"postgresql://bakeoff:secret@/{name}?host={self.folder}"
