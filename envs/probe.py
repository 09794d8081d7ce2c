"""What an environment holds and does, as lines "key<TAB>value" for `bakeoff env doctor`.

Usage: probe.py torch|tensorflow|jax|keras2|onnxruntime. Frameworks write to stdout as they
please; lines of ours start with "bakeoff:".
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import sysconfig
import time


def say(key: str, value: object) -> None:
    text = " ".join(str(value).split())
    print(f"bakeoff:{key}\t{text}", flush=True)


def load(name: str, environment: str = "") -> object:
    started = time.monotonic()
    module = importlib.import_module(name)
    version = getattr(module, "__version__", "unknown")
    say(f"version.{name}", version)
    say(f"import_seconds.{environment or name}", f"{time.monotonic() - started:.1f}")
    return module


def load_if_there(name: str) -> None:
    try:
        load(name)
    except ImportError as error:
        say(f"missing.{name}", error)


def probe_torch() -> None:
    import torch

    say("threads", torch.get_num_threads())
    say("devices", "cuda" if torch.cuda.is_available() else "cpu")
    config = torch.__config__.show()
    found = re.search(r"BLAS_INFO=(\w+)", config)
    onednn = "with oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"
    say("BLAS", f"{found.group(1) if found else 'unknown'}, {onednn}")
    keep = ("CPU capability", "Intel(R)", "OpenMP", "CUDA Runtime", "CuDNN")
    lines = [line.strip(" -") for line in config.splitlines()]
    flags = [line for line in lines if line.startswith(keep)]
    say("build", "; ".join(flags))
    say("tf32", torch.get_float32_matmul_precision())


def probe_tensorflow() -> None:
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    say("build", "; ".join(f"{key}={value}" for key, value in sorted(build.items())))
    # 0: TensorFlow takes every CPU that the process may use.
    intra = tf.config.threading.get_intra_op_parallelism_threads()
    say("threads", intra or len(os.sched_getaffinity(0)))
    say(
        "devices",
        " ".join(d.device_type.lower() for d in tf.config.list_physical_devices()),
    )
    setting = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
    say("onednn", setting)
    say("BLAS", "Eigen" + ("" if setting == "0" else ", with oneDNN by its own choice"))


def probe_keras2() -> None:
    probe_tensorflow()
    import tf_keras

    say("floatx", tf_keras.backend.floatx())


def probe_jax() -> None:
    import jax

    say("devices", " ".join(sorted({d.platform for d in jax.devices()})))
    say("threads", len(os.sched_getaffinity(0)))
    say("build", f"backend={jax.default_backend()}; x64={jax.config.jax_enable_x64}")
    say("BLAS", "Eigen within XLA; OpenBLAS of scipy for LAPACK")
    load_if_there("optax")


def probe_onnxruntime() -> None:
    import onnxruntime

    say("threads", len(os.sched_getaffinity(0)))
    providers = onnxruntime.get_available_providers()
    say("devices", " ".join(providers))
    say("build", onnxruntime.get_build_info())
    load("onnx")


# Libraries of matrix products, and of the threads that they share.
KINDS = (
    "openblas mkl_ dnnl blis cblas atlas armpl nvpl cublas cudnn gomp iomp5 libomp"
).split()


def say_blas() -> None:
    """What numpy was built with, and what this process really has loaded."""
    import numpy

    config = numpy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    say("BLAS of numpy", f"{blas.get('name', '?')} {blas.get('version', '')}")
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        files = {os.path.basename(line.split()[-1]) for line in maps if "/" in line}
    loaded = sorted(f for f in files if any(kind in f for kind in KINDS))
    say("BLAS libraries loaded", " ".join(loaded) or "none: built in")


def main() -> None:
    framework = sys.argv[1]
    say("python", sys.version.split()[0])
    say("include", sysconfig.get_path("include"))
    load("numpy")
    load("safetensors")
    load("tf_keras" if framework == "keras2" else framework, framework)
    probes = {
        "torch": probe_torch,
        "tensorflow": probe_tensorflow,
        "jax": probe_jax,
        "keras2": probe_keras2,
        "onnxruntime": probe_onnxruntime,
    }
    probes[framework]()
    if framework not in ("keras2", "onnxruntime"):
        os.environ["KERAS_BACKEND"] = framework
        load_if_there("keras")
    say_blas()
    say("done", "yes")


if __name__ == "__main__":
    main()
