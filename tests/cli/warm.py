"""Workers that start from a process which has imported the framework already.

Hundreds of scripts through the gate are hundreds of imports, seconds each. Here the
interpreter of an environment is replaced by one that hands the modules of `HANDED`, and
scripts after -B, to a waiting process, which forks. For the gate, `bakeoff check` and the import of models only
(support.Place, `warm`): a race freezes its workers, and these are no children of Bakeoff.

All tests of a call share the waiting process of an environment (scripts/run_ctest.py,
or support.main() of a file that runs by itself). A fork writes its own variables over
those that it started with, so that /proc shows whose it is (support.MARK).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = "BAKEOFF_TEST_WARM"  # where the waiting processes of a call have their doors

HANDED = ("bakeoff_runner", "bakeoff_runner.check")
# TensorFlow imports Keras, which reads then what an import sets first.
IMPORTER = {"torch": ("bakeoff_import",), "jax": ("bakeoff_import",)}
FRONT = """#!{python} -IS
import array, json, os, socket, sys

how, what = (*sys.argv[1:3], "", "")[:2]
if not (how == "-m" and what in {handed!r} or how == "-B" and what.endswith(".py")):
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

folder = os.path.dirname(os.path.dirname({socket!r}))
for name in {imports!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
gc.freeze()  # what was imported is no garbage of any fork: collecting takes no time
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind({socket!r})
door.listen(64)
door.settimeout(1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def show(variables):
    # In /proc/self/environ, whose bytes lie where this process found its variables.
    with open("/proc/self/stat") as stat:
        begin, end = map(int, stat.read().rpartition(")")[2].split()[47:49])
    pairs = (k.encode() + b"=" + v.encode() + b"\\0" for k, v in variables.items())
    text = b"".join(pairs)
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(begin)
        memory.write(text[: end - begin].ljust(end - begin, b"\\0"))


def work(line, message, fds):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    door.close()
    told = json.loads(message)
    os.environ.clear()
    os.environ.update(told["environment"])
    show(told["environment"])
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
    tempfile.tempdir = None  # TMPDIR is another one
    os.chdir(told["folder"])
    sys.path.insert(0, os.environ.get("PYTHONPATH", ""))
    if "PYTHONSAFEPATH" in os.environ and "" in sys.path:
        sys.path.remove("")
    exec(os.environ.pop("BAKEOFF_PLANTED", ""), {{}})  # a mistake of a test
    package, *rest = told["argv"]
    sys.argv = [package, *rest]
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    code = 0
    try:
        if package.endswith(".py"):
            sys.dont_write_bytecode = True
            runpy.run_path(package, run_name="__main__")
        else:
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
while os.path.isdir(folder):  # until the call has ended
    try:
        line, _ = door.accept()
    except TimeoutError:
        continue
    line.settimeout(None)
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
    "onnxruntime": ("numpy", "onnxruntime", "onnx", "safetensors.numpy"),
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


@contextlib.contextmanager
def folder_of_call() -> Iterator[None]:
    """Where no call of many files has made one; its waiting processes end with it."""
    if FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="bakeoff_warm_") as folder:
        os.environ[FOLDER] = folder
        yield


def interpreter(environment: str, python: Path) -> Path:
    """Starts workers of an environment from its waiting process, which it starts if need be."""
    folder = Path(os.environ[FOLDER]) / environment
    front, door = folder / "python", folder / "door"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not door.exists():
            start(environment, python, front, door)
    return front


def start(environment: str, python: Path, front: Path, door: Path) -> None:
    imports = IMPORTS[environment]
    names = {"python": str(python), "socket": str(door), "imports": imports}
    first = FIRST if environment == "torch" else ""
    handed = HANDED + IMPORTER.get(environment, ())
    names |= {"handed": handed, "first": first}
    front.write_text(FRONT.format(**names))
    front.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", FOLDER)}
    with open(door.with_name("log"), "wb") as log:
        process = subprocess.Popen(
            [str(python), "-c", WAITING.format(**names)],
            env={
                **kept,
                "PYTHONHASHSEED": "0",  # as imports have it
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",  # a process with threads must not fork
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "BAKEOFF_TEST_ROOM": "x" * 16384,  # for the variables of forks
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    end = time.monotonic() + 600
    while not door.exists():
        if process.poll() is not None or time.monotonic() > end:
            said = door.with_name("log").read_text()
            raise AssertionError(f"no waiting process of {python}:\n{said}")
        time.sleep(0.05)
