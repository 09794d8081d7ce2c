"""A Slurm, and an ssh server, of the tests' own on this machine: daemons that are ended by their numbers.

The nodes are daemons side by side on one host; each runs one task at a time. Folder, socket and ports are the test's
own, so several may run at once, beside one that the machine has.
"""

from __future__ import annotations

import getpass
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from tests.cli.support import HANGS, ROOT

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
SEARCHED = os.environ["PATH"] + ":/usr/sbin:/sbin"

# Beside the guide's lines: tests wait less.
QUICK = """
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdTimeout=6
KillWait=2
"""


def guide() -> str:
    """The configuration that docs/fleet.md gives a newcomer."""
    text = (ROOT / "docs" / "fleet.md").read_text()
    return text.split("```slurm\n")[1].split("```")[0]


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


class Slurm:
    """Running from its making to close(), with the nodes n1 and n2, as docs/fleet.md says"""

    def __init__(self) -> None:
        self.programs = {name: shutil.which(name, path=SEARCHED) for name in PROGRAMS}
        if not all(self.programs.values()):
            if os.environ.get("BAKEOFF_REQUIRE_ENVS"):
                raise AssertionError(f"Slurm is not installed: {self.programs}")
            raise unittest.SkipTest("Slurm is not installed")
        self.folder = Path(tempfile.mkdtemp(prefix="bakeoff_slurm_", dir="/tmp"))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.nodes = ["n1", "n2"]
        self.write_configuration()
        self.environment = {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": SEARCHED,
        }
        try:
            self.start_munge()
            self.start("slurmctld", "-D", "-i")
            for node in self.nodes:
                self.start_node(node)
            self.wait_until_idle()
        except BaseException:
            self.close()
            raise

    def write_configuration(self) -> None:
        host = socket.gethostname().split(".")[0]
        text = guide()
        for name, value in (("HOST", host), ("USER", getpass.getuser())):
            text = re.sub(rf"\b{name}\b", value, text)
        text = text.replace("DIR/", f"{self.folder}/")
        for old, new in zip(("16817", "17001", "17002"), free_ports(3), strict=True):
            text = text.replace(f"={old}", f"={new}")
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(text + QUICK)

    def spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **getattr(self, "environment", {})},
            )

    def start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        program = self.programs["munged"]
        assert program is not None
        self.spawn(
            "munged",
            program,
            "--foreground",
            "--force",
            *(
                f"--{option}={self.folder / file}"
                for option, file in (
                    ("key-file", "munge.key"),
                    ("socket", "munge.socket"),
                    ("pid-file", "munged.pid"),
                    ("log-file", "munged.log"),
                    ("seed-file", "munged.seed"),
                )
            ),
        )
        self.wait(lambda: (self.folder / "munge.socket").exists(), "munged")

    def start(self, name: str, *options: str) -> None:
        program = self.programs[name]
        assert program is not None
        self.spawn(name, program, *options, "-f", str(self.folder / "slurm.conf"))

    def start_node(self, node: str, **environment: str) -> None:
        program = self.programs["slurmd"]
        assert program is not None
        (self.folder / f"spool-{node}").mkdir(exist_ok=True)
        self.environment.update(environment)
        self.spawn(
            node, program, "-D", "-N", node, "-f", str(self.folder / "slurm.conf")
        )
        for name in environment:
            del self.environment[name]

    def stop(self, name: str) -> None:
        """Ends a daemon; a controller keeps its state for the next one."""
        process = self.processes.pop(name)
        process.terminate()
        process.wait()

    def lose(self, node: str) -> None:
        """A machine that loses its power: its daemon and all that it runs end at once."""
        for pid in [*self.processes_of(node), self.processes[node].pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.stop(node)

    def processes_of(self, node: str) -> set[int]:
        """Those of its jobs, and the steps' own."""
        marks = {
            f"SLURMD_NODENAME={node}".encode(),
            f"SLURM_CONF={self.folder}/slurm.conf".encode(),
        }
        found = set()
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or not marks <= set(
                    (entry / "environ").read_bytes().split(b"\0")
                ):
                    continue
                found.add(int(entry.name))
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                if "slurmstepd" in (Path("/proc") / parent / "comm").read_text():
                    found.add(int(parent))
            except OSError:
                continue
        return found

    def wait(self, condition: Callable[[], object], name: str) -> None:
        end = time.monotonic() + HANGS
        while not condition():
            ended = self.processes[name].poll() if name in self.processes else None
            if ended is not None or time.monotonic() > end:
                logs = "\n".join(
                    f"{log.name}: {log.read_text(errors='replace')[-2000:]}"
                    for log in sorted(self.folder.glob("*.log"))
                )
                raise AssertionError(f"{name} is not ready ({ended})\n{logs}")
            time.sleep(0.05)

    def call(self, *command: str) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **self.environment},
        )
        return done.stdout + done.stderr

    def wait_until_idle(self) -> None:
        def idle() -> bool:
            seen = self.call("sinfo", "--noheader", "--Node", "--format=%N %T")
            return sorted(seen.split("\n")[:-1]) == [f"{n} idle" for n in self.nodes]

        self.wait(idle, "slurmctld")

    def queue(self) -> str:
        return self.call("squeue", "--noheader", "--array", "--format=%i %T %N %j")

    def close(self) -> None:
        if "slurmctld" in self.processes:
            self.call("scancel", f"--user={getpass.getuser()}")
        for name in [*self.nodes, "slurmctld", "munged"]:
            process = self.processes.pop(name, None)
            if process is None:
                continue
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


SSH_CLIENT = """
Host a b
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/key
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
Host nowhere
  HostName 127.0.0.1
  Port 1
"""


class SshServer:
    """An ssh server on the loopback, by which this machine is the hosts a and b, for the user who runs the tests."""

    def __init__(self) -> None:
        program = shutil.which("sshd", path=SEARCHED)
        if program is None:
            if os.environ.get("BAKEOFF_REQUIRE_ENVS"):
                raise AssertionError("there is no ssh server")
            raise unittest.SkipTest("there is no ssh server")
        self.folder = Path(tempfile.mkdtemp(prefix="bakeoff_ssh_", dir="/tmp"))
        for name in ("key", "host_key"):
            subprocess.run(
                [
                    "ssh-keygen",
                    "-q",
                    "-t",
                    "ed25519",
                    "-N",
                    "",
                    "-f",
                    self.folder / name,
                ],
                check=True,
            )
        [port] = free_ports(1)
        (self.folder / "client").write_text(
            SSH_CLIENT.format(port=port, folder=self.folder)
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        options = {
            "Port": port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host_key",
            "AuthorizedKeysFile": self.folder / "key.pub",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "yes",
            "AcceptEnv": "BAKEOFF_TEST_MARK",
            "SetEnv": "SHLVL=2",  # bash leaves out ~/.bashrc, whatever that may start
        }
        words = [
            word for item in options.items() for word in ("-o", "{}={}".format(*item))
        ]
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            [program, "-D", "-e", "-f", "/dev/null", *words],
            stderr=self.log,
            stdin=subprocess.DEVNULL,
        )
        self.command = f"ssh -F {self.folder / 'client'} -o SendEnv=BAKEOFF_TEST_MARK"
        end = time.monotonic() + HANGS
        while subprocess.run(
            [*self.command.split(), "a", "true"], capture_output=True
        ).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError((self.folder / "log").read_text(errors="replace"))
            time.sleep(0.05)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
