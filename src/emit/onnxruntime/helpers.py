"""What ONNX Runtime scripts call (emit/helpers.h)."""

import numpy as np


def causal_mask(keys, window, real):
    """What is added to the scores: 0 where a query sees a key, else -inf; 0: no window."""
    seen = np.tri(keys, dtype=bool)
    if window:
        seen &= ~np.tri(keys, k=-window, dtype=bool)
    return np.where(seen, 0, -np.inf).astype(real)


def lstm_gates(array):
    """The gates i, f, g, o in ONNX's order i, o, f, c, with an axis of directions."""
    i, f, g, o = np.split(array, 4)
    return np.concatenate([i, o, f, g])[np.newaxis]


def lstm_biases(bias):
    """ONNX has a second bias, which stays zero."""
    gates = lstm_gates(bias)
    return np.concatenate([gates, np.zeros_like(gates)], axis=1)


def gru_gates(array):
    """The gates r, z, n in ONNX's order z, r, h, with an axis of directions."""
    r, z, n = np.split(array, 3)
    return np.concatenate([z, r, n])[np.newaxis]


def gru_biases(bias_ih, bias_hh):
    return np.concatenate([gru_gates(bias_ih), gru_gates(bias_hh)], axis=1)
