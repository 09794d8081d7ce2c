"""Names of parameters for the variables of a Keras model.

Keras has one flat list of layers, which people number by hand: conv2_block1_1_conv
stands in the first block of conv2. As conv2_block.0.conv1 the parts of a model that
repeat can be seen, and are printed once. A layer's variables are called after the
slots of the ops that read them, as in torch, so that every framework prints a layer
as its own: kernel and gamma are a weight.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*[^0-9_])_?(0|[1-9][0-9]*)")

_SLOTS = {
    "kernel": "weight",
    "depthwise_kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "scale": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
_SLOTS_OF = {
    "recurrent_kernel": {
        "kernel": "weight_ih_l0",
        "recurrent_kernel": "weight_hh_l0",
        "bias": "bias_ih_l0",
    },
    "pointwise_kernel": {
        "depthwise_kernel": "depthwise.weight",
        "pointwise_kernel": "pointwise.weight",
        "bias": "pointwise.bias",
    },
}


_COUNTED = re.compile(r"(.+?)(?:_([1-9][0-9]*))?")  # as Keras numbers names of its own

Above = tuple[str, ...]


class Names:
    """Names of variables by their keys: layer/layer/variable."""

    def __init__(self, keys: Iterable[str]) -> None:
        below: defaultdict[Above, list[str]] = defaultdict(list)
        for key in keys:
            words = tuple(key.split("/"))
            for i, word in enumerate(words):
                below[words[:i]].append(word)
        self._below = {above: set(names) for above, names in below.items()}
        self._slots = {above: slots(names) for above, names in below.items()}
        self._paths = {above: self._layers(above, below[above]) for above in below}

    def name(self, key: str, slot: str = "") -> str:
        """slot: that of a part of the variable."""
        words = tuple(key.split("/"))
        layers = [
            self._paths.get(words[:i], {}).get(word, word)
            for i, word in enumerate(words[:-1])
            if not self._only_cell(words[:i], word)
        ]
        own = self._slots.get(words[:-1], {}).get(words[-1], words[-1])
        return ".".join([*layers, slot or own])

    def _layers(self, above: Above, names: Iterable[str]) -> dict[str, str]:
        known = list(dict.fromkeys(names))
        paths = layer_paths(known) | modules_in_lists(
            [name for name in known if self._has_layers((*above, name))]
        )
        if above:
            paths |= counted_again([name for name in known if paths[name] == name])
        if len({path.lower() for path in paths.values()}) < len(known):
            return {name: name for name in known}
        return paths

    def _has_layers(self, at: Above) -> bool:
        inner = self._below.get(at, set())
        return any(self._below.get((*at, word)) for word in inner)

    def _only_cell(self, above: Above, word: str) -> bool:
        """The cell of a recurrent layer, which has nothing else."""
        return bool(above) and word.endswith("_cell") and self._below[above] == {word}


def _counted(names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Names by their stem, with their numbers: block, block_1."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name in names:
        match = _COUNTED.fullmatch(name)
        assert match is not None
        found[match[1]][name] = int(match[2] or 0)
    return found


def modules_in_lists(names: Iterable[str]) -> dict[str, str]:
    """block, block_1 -> block.0, block.1: layers with layers of their own."""
    paths: dict[str, str] = {}
    for stem, those in _counted(names).items():
        if len(those) > 1 and set(those.values()) == set(range(len(those))):
            paths |= {name: f"{stem}.{n}" for name, n in those.items()}
    return paths


def counted_again(names: Iterable[str]) -> dict[str, str]:
    """dense_2, dense_3 -> dense, dense_1: Keras counts layers over the whole model,
    here they are counted within one layer."""
    paths: dict[str, str] = {}
    for stem, those in _counted(names).items():
        for i, name in enumerate(sorted(those, key=lambda name: those[name])):
            paths[name] = f"{stem}_{i}" if i else stem
    return paths


def slots(variables: Iterable[str]) -> dict[str, str]:
    """The name of each variable of one layer within the layer."""
    known = list(dict.fromkeys(variables))
    named = dict(_SLOTS)
    for sign, those in _SLOTS_OF.items():
        if sign in known:
            named.update(those)
    found = {name: named.get(name, name) for name in known}
    found |= counted_again(name for name in known if name.startswith("variable"))
    if len(set(found.values())) < len(known):
        return {name: name for name in known}
    return found


def layer_paths(names: Iterable[str]) -> dict[str, str]:
    """The path of each layer, by its name; every path stands once.

    A name is cut at its last number behind which at least two layers begin alike, if
    the same is true of another number: block1_conv, block1_bn, block2_conv, block2_bn.
    Numbers without a gap are counted from 0."""
    known = list(dict.fromkeys(names))
    cuts = {name: _beginnings(name) for name in known}
    members: defaultdict[str, set[str]] = defaultdict(set)
    for name in known:
        for begin in cuts[name]:
            members[begin].add(name)
    stems: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for begin in members:
        if found := _NUMBERED.fullmatch(begin):
            stems[found[1]][begin] = int(found[2])
    # Longest first: a layer that is cut later is not cut here.
    places: dict[str, tuple[str, int]] = {}
    for stem in sorted(stems, key=len, reverse=True):
        numbers = {b: n for b, n in stems[stem].items() if len(members[b]) > 1}
        if len(set(numbers.values())) != len(numbers) or len(numbers) < 2:
            continue
        first, last = min(numbers.values()), max(numbers.values())
        gaps = last - first + 1 > len(numbers)
        for begin, number in numbers.items():
            places[begin] = (stem, number if gaps else number - first)
            for name in list(members[begin]):
                for shorter in cuts[name][: cuts[name].index(begin)]:
                    members[shorter].discard(name)
    paths = {name: _path(name, places) for name in known}
    if len({path.lower() for path in paths.values()}) < len(known):
        return {name: name for name in known}
    return paths


def _beginnings(name: str) -> list[str]:
    words = name.split("_")
    return ["_".join(words[:i]) for i in range(1, len(words))]


def _path(name: str, places: dict[str, tuple[str, int]]) -> str:
    for begin in reversed(_beginnings(name)):
        if begin in places:
            stem, number = places[begin]
            words = name[len(begin) + 1 :].split("_")
            if len(words) > 1 and words[0].isdigit():  # 1_conv: not a name in Python
                words = [*words[1:-1], words[-1] + words[0]]
            return f"{stem}.{number}.{'_'.join(words)}"
    return name
