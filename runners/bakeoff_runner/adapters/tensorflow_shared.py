"""What the adapter of TensorFlow shares with those of Keras on TensorFlow."""

from __future__ import annotations

import os
from typing import Any

from bakeoff_runner.adapter import Array, Peak
from bakeoff_runner.probe import Probe
from bakeoff_runner.transfers import Arrays, Device


def tensorflow_peak() -> Peak:
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return "TensorFlow keeps no count on the CPU"
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


def tensorflow_device(name: str) -> Device:
    import tensorflow as tf

    def copy(array: Array) -> Any:
        with tf.device(name):
            return tf.identity(tf.convert_to_tensor(array))

    def wait(_: Any) -> None:
        tf.test.experimental.sync_devices()

    wait(None)
    return Device(copy, wait)


def tensorflow_arrays() -> Arrays:
    import numpy as np
    import tensorflow as tf

    return {type(tf.constant(0)): np.asarray}


def probe_tensorflow(probe: Probe) -> None:
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    probe.say("build", "; ".join(f"{key}={build[key]}" for key in sorted(build)))
    # 0: TensorFlow takes every CPU that the process may use.
    intra = tf.config.threading.get_intra_op_parallelism_threads()
    probe.say("threads", intra or len(os.sched_getaffinity(0)))
    devices = tf.config.list_physical_devices()
    probe.say("devices", " ".join(d.device_type.lower() for d in devices))
    setting = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
    probe.say("onednn", setting)
    choice = "" if setting == "0" else ", with oneDNN by its own choice"
    probe.say("BLAS", "Eigen" + choice)
