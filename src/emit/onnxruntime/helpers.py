"""What ONNX Runtime scripts call (emit/helpers.h)."""

import numpy as np
import onnxruntime as ort


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


def empty_cache(cache, rows, device):
    """Zeros for an input of the graph; no places where it grows."""
    sizes = [0 if isinstance(size, str) else size for size in cache.shape[1:]]
    real = np.float64 if cache.type == "tensor(double)" else np.float32
    zeros = np.zeros((rows, *sizes), real)
    # Memory of its own: ortvalue_from_numpy has the array's, which a binding does not keep.
    value = ort.OrtValue.ortvalue_from_shape_and_type(zeros.shape, real, device, 0)
    value.update_inplace(zeros)
    return value


class Decoder:
    """A session whose steps read the rows of words so far, and keep no more of them."""

    def __init__(self, session, rows):
        self.session = session
        self.words, self.positions = session.get_inputs()
        self.read = np.zeros((rows, self.words.shape[1]), np.int32)

    def step(self, words, first):
        """Logits of the word that follows `words`, the first of which is at `first`."""
        end = first + words.shape[1]
        self.read[:, first:end] = words
        last = np.arange(end - 1, end, dtype=np.int32)
        feed = {self.words.name: self.read, self.positions.name: last}
        return self.session.run(None, feed)[0][:, -1]


class CachedDecoder:
    """A session with its caches; each step writes its keys and values where they lie."""

    def __init__(self, session, rows, device):
        self.session, self.binding = session, session.io_binding()
        self.words, self.positions, *pasts = session.get_inputs()
        self.logits = session.get_outputs()[0]
        for past in pasts:
            cache = empty_cache(past, rows, device)
            self.binding.bind_ortvalue_input(past.name, cache)
            self.binding.bind_ortvalue_output(past.name + ".next", cache)

    def step(self, words, first):
        """Logits of the word that follows `words`, the first of which is at `first`."""
        positions = np.arange(first, first + words.shape[1], dtype=np.int32)
        self.binding.bind_cpu_input(self.words.name, words)
        self.binding.bind_cpu_input(self.positions.name, positions)
        self.binding.bind_output(self.logits.name)
        self.session.run_with_iobinding(self.binding)
        return self.binding.get_outputs()[-1].numpy()[:, -1]


class GrowingDecoder:
    """A session whose steps give longer caches, which the next one gets."""

    def __init__(self, session, rows, device):
        self.session, self.rows, self.device = session, rows, device
        self.words, self.positions, *self.pasts = session.get_inputs()
        self.logits = session.get_outputs()[0]

    def step(self, words, first):
        """Logits of the word that follows `words`, the first of which is at `first`."""
        if first == 0:
            sizes = self.rows, self.device
            self.caches = [empty_cache(past, *sizes) for past in self.pasts]
        binding = self.session.io_binding()
        for past, cache in zip(self.pasts, self.caches, strict=True):
            binding.bind_ortvalue_input(past.name, cache)
            binding.bind_output(past.name + ".next", self.device)
        positions = np.arange(first, first + words.shape[1], dtype=np.int32)
        binding.bind_cpu_input(self.words.name, words)
        binding.bind_cpu_input(self.positions.name, positions)
        binding.bind_output(self.logits.name)
        self.session.run_with_iobinding(binding)
        *self.caches, logits = binding.get_outputs()
        return logits.numpy()[:, -1]
