"""Workers that start from a process which has imported the framework already.

Hundreds of scripts through the gate are hundreds of imports, seconds each. Here the
interpreter of an environment is replaced by one that hands the modules of `HANDED` to a
waiting process, which forks. For the gate, `bakeoff check` and the import of models only
(support.Place, `warm`): a race freezes its workers, and these are no children of Bakeoff.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

HANDED = ("bakeoff_runner", "bakeoff_runner.check", "bakeoff_import")
FRONT = """#!{python} -IS
import array, json, os, socket, sys

if sys.argv[1:2] != ["-m"] or sys.argv[2] not in {handed!r}:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
# Standard files, and 3 and 4 where requests and answers travel by them.
fds = array.array("i", [fd for fd in range(5) if os.path.exists(f"/proc/self/fd/{{fd}}")])
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.connect({socket!r})
told = {{"argv": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}}
line.sendmsg([json.dumps(told).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
for fd in fds:
    os.close(fd)
status = int(line.recv(16) or b"1")
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""

WAITING = """
import array, gc, importlib, json, os, runpy, signal, socket, sys, tempfile

for name in {imports!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
gc.freeze()  # what was imported is no garbage of any fork: collecting takes no time
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind({socket!r})
door.listen(16)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def work(line, message, fds):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    door.close()
    process = os.fork()
    if process:  # tells how the other one ends
        for fd in fds:
            os.close(fd)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        try:
            line.send(str(status).encode())
        except OSError:  # the one in front was killed
            pass
        os._exit(0)
    line.close()
    high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
    for i, fd in enumerate(high):
        os.dup2(fd, i)
        os.close(fd)
    for fd in fds:
        if fd >= len(fds):
            os.close(fd)
    told = json.loads(message)
    os.environ.clear()
    os.environ.update(told["environment"])
    tempfile.tempdir = None  # TMPDIR is another one
    os.chdir(told["folder"])
    sys.path.insert(0, os.environ["PYTHONPATH"])
    if "PYTHONSAFEPATH" in os.environ and "" in sys.path:
        sys.path.remove("")
    exec(os.environ.pop("BAKEOFF_PLANTED", ""), {{}})  # a mistake of a test
    package, *rest = told["argv"]
    sys.argv = [package, *rest]
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    code = 0
    try:
        runpy.run_module(package, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


exported = False
while True:
    line, _ = door.accept()
    message, extra, _, _ = line.recvmsg(1 << 20, socket.CMSG_SPACE(5 * 4))
    if not exported and json.loads(message)["argv"] == ["bakeoff_import"]:
        exported = True
        exec({first!r})
        gc.freeze()
    fds = array.array("i")
    for _, _, data in extra:
        fds.frombytes(data)
    if os.fork() == 0:
        work(line, message, list(fds))
    line.close()
    for fd in fds:
        os.close(fd)
"""

# What a worker of an environment imports sooner or later.
IMPORTS = {
    "torch": (
        "numpy",
        "safetensors.torch",
        "torch",
        "torch._dynamo",
        "torch.export._trace",
        "torch.optim",
        "torch.nn.functional",
    ),
    "tensorflow": ("numpy", "tensorflow", "safetensors.numpy"),
    "keras2": ("numpy", "tensorflow", "tf_keras", "safetensors.numpy"),
    "jax": ("numpy", "jax", "jax.numpy", "optax", "safetensors.numpy"),
}

# What the first export of a module does once for all later ones.
FIRST = """
import torch, warnings

layers = torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Dropout()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.export.export(
        torch.nn.Sequential(*layers),
        (torch.ones(4, 2),),
        dynamic_shapes=({0: torch.export.Dim("N", min=2)},),
        strict=False,
    ).run_decompositions({})
"""


class Warm:
    """The waiting process of one environment; `interpreter` starts workers from it."""

    def __init__(
        self, folder: Path, environment: str, python: Path, variables: Mapping[str, str]
    ) -> None:
        folder.mkdir(parents=True)
        self.environment = environment
        self.interpreter = folder / "python"
        door = folder / "door"
        imports = IMPORTS[environment]
        names = {"python": str(python), "socket": str(door), "imports": imports}
        names |= {"handed": HANDED, "first": FIRST}
        self.interpreter.write_text(FRONT.format(**names))
        self.interpreter.chmod(0o755)
        code = WAITING.format(**names)
        self.process = subprocess.Popen(
            [str(python), "-c", code],
            env={
                **variables,
                "PYTHONHASHSEED": "0",  # as imports have it
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",  # a process with threads must not fork
                "TF_CPP_MIN_LOG_LEVEL": "2",
            },
        )
        end = time.monotonic() + 600
        while not door.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no waiting process of {python}")
            time.sleep(0.05)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
