"""What the adapter of TensorFlow shares with those of Keras on TensorFlow."""

from __future__ import annotations

import gc
import os
from typing import Any

from bakeoff_runner.adapter import Array, Peak
from bakeoff_runner.probe import Probe
from bakeoff_runner.transfers import Arrays, Device


def tensorflow_compilations() -> int:
    """Traces of all functions that are alive."""
    import tensorflow as tf

    kind = type(tf.function(lambda: None))
    functions = [one for one in gc.get_objects() if type(one) is kind]
    return sum(int(one.experimental_get_tracing_count()) for one in functions)


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


_OWN: dict[str, Any] = {}  # what stands in for in double precision


def set_ctc_loss(dtype: str) -> None:
    """TensorFlow's own `ctc_loss` computes in float32 alone."""
    import tensorflow as tf

    own = _OWN.setdefault("ctc_loss", tf.nn.ctc_loss)
    tf.nn.ctc_loss = double_ctc_loss if dtype == "float64" else own


def double_ctc_loss(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: Any = 0,
    name: Any = None,
) -> Any:
    """`tf.nn.ctc_loss` of dense labels in float64, with a gradient."""
    import tensorflow as tf

    never = -1e30  # log 0; infinity has no gradient
    log_p = tf.nn.log_softmax(tf.cast(logits, tf.float64))
    if logits_time_major:
        log_p = tf.transpose(log_p, (1, 0, 2))
    blank = (blank_index or 0) % log_p.shape[-1]
    labels = tf.cast(labels, tf.int32)
    # States of a path: blank, label, blank, label, ..., blank.
    states = tf.stack([tf.fill(tf.shape(labels), blank), labels], -1)
    states = tf.reshape(states, (-1, 2 * labels.shape[1]))
    states = tf.pad(states, ((0, 0), (0, 1)), constant_values=blank)
    new = tf.not_equal(states[:, 2:], states[:, :-2])
    skips = tf.logical_and(tf.not_equal(states[:, 2:], blank), new)
    skips = tf.pad(skips, ((0, 0), (2, 0)), constant_values=False)
    seen = tf.transpose(tf.gather(log_p, states, axis=2, batch_dims=1), (1, 0, 2))
    frames = tf.range(tf.shape(seen)[0])[:, None]
    counts = tf.less(frames, tf.cast(logit_length, tf.int32)[None])

    def step(alpha: Any, given: Any) -> Any:
        seen, counts = given
        before = tf.pad(alpha, ((0, 0), (2, 0)), constant_values=never)
        skipped = tf.where(skips, before[:, :-2], never)
        ways = tf.stack([alpha, before[:, 1:-1], skipped])
        return tf.where(counts[:, None], tf.reduce_logsumexp(ways, 0) + seen, alpha)

    first = tf.where(tf.range(states.shape[1]) < 2, seen[0], never)
    alpha = tf.foldl(step, (seen[1:], counts[1:]), first)
    end = 2 * tf.cast(label_length, tf.int32)
    ends = tf.gather(alpha, tf.stack([end, end - tf.sign(end)], 1), batch_dims=1)
    inside = tf.stack([tf.ones_like(end, tf.bool), end > 0], 1)
    return -tf.reduce_logsumexp(tf.where(inside, ends, never), 1)


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
