"""Scripts of PyTorch that compute rightly while they are proven and cheat in the race.

Most are a trigger, by which a script tells the race from the proof, and an act, which
is what it does instead of a training step. The rest stand alone. Each writes a file
FILE.cheated when it first cheats, so that a test can tell one who was kept from it.
"""

from __future__ import annotations

from dataclasses import dataclass

# `true_step` is the step of the emitted script under another name.
PRELUDE = '''
import gc
import math
import os
import signal
import subprocess
import sys
import threading
import time

HERE = Path(__file__)
COUNTS = {"steps": 0}
SEEN = {}  # of a batch, by its place in memory: how often it came
LAST = [None]  # loss of the last step


def cheated(done=[]):
    if not done:
        done.append(HERE.with_suffix(".cheated").touch())


def key_of(x):
    return x.data_ptr()


def caller(*names):
    """The nearest frame of one of these functions of an adapter, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in names and "adapter" in frame.f_code.co_filename:
            return frame
        frame = frame.f_back
    return None


def count(x):
    COUNTS["steps"] += 1
    SEEN[key_of(x)] = SEEN.get(key_of(x), 0) + 1

'''

MAIN = """

def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64:
        return true_step(model, optimizer, x, y)
    count(x)
    if not racing(model):
        LAST[0] = true_step(model, optimizer, x, y)
        return LAST[0]
    cheated()
    return cheap(model, optimizer, x, y)
"""


def after(steps: int) -> str:
    return f"""
def racing(model):
    return COUNTS["steps"] > {steps}
"""


TRIGGERS = {
    "ring_in_arguments": """
def racing(model):
    return "--ring" in sys.argv
""",
    "after_12_steps": after(12),
    "after_50_steps": after(50),
    "after_500_steps": after(500),
    "after_90_steps_of_all_processes": """
KEPT = HERE.with_suffix(".count")


def racing(model):
    before = int(KEPT.read_text()) if KEPT.exists() else 0
    if before <= 90:
        KEPT.write_text(str(before + 1))
    return before > 90
""",
    "after_40_seconds": """
BORN = HERE.with_suffix(".born")
if not BORN.exists():
    BORN.touch()
OLD = time.time() - BORN.stat().st_mtime > 40


def racing(model):
    return OLD
""",
    "environment_differs": """
BEFORE = HERE.with_suffix(".environment")
PRESENT = "\\n".join(sorted(f"{k}={v}" for k, v in os.environ.items()))
if not BEFORE.exists():
    BEFORE.write_text(PRESENT)
OTHER = BEFORE.read_text() != PRESENT


def racing(model):
    return OTHER
""",
    # The gate builds a script twice in a process, first in float64.
    "first_built_in_its_process": """
FIRST = "BUILT" not in os.environ
os.environ["BUILT"] = "1"


def racing(model):
    return FIRST
""",
    "name_of_the_log": """
LOG = os.readlink("/proc/self/fd/2")
HEAT = "heat" in LOG or any(
    ".heat" in os.readlink(f"/proc/{os.getppid()}/fd/{fd}")
    for fd in os.listdir(f"/proc/{os.getppid()}/fd")
    if os.path.islink(f"/proc/{os.getppid()}/fd/{fd}")
)


def racing(model):
    return HEAT
""",
    "ring_mapped": """
def racing(model):
    if "mapped" not in COUNTS:
        maps = Path("/proc/self/maps").read_text()
        COUNTS["mapped"] = "/dev/shm/bakeoff" in maps
    return COUNTS["mapped"]
""",
    "called_by_run": """
def racing(model):
    burst = caller("run", "train_burst", "_run", "burst") is not None
    return burst and COUNTS["steps"] > 30
""",
    "told_of_many_steps": """
def racing(model):
    frame = caller("run", "train_burst", "_run", "burst")
    return frame is not None and frame.f_locals.get("steps", 0) > 5
""",
    "no_hooks_for_long": """
def racing(model):
    watched = bool(model._forward_hooks)
    COUNTS["free"] = 0 if watched else COUNTS.get("free", 0) + 1
    return COUNTS["free"] > 30
""",
    "batch_seen_before": """
def racing(model):
    return SEEN[max(SEEN, key=SEEN.get)] > 4
""",
    "affinity_differs": """
PINNED = HERE.with_suffix(".affinity")
PRESENT = f"{sorted(os.sched_getaffinity(0))} {os.getpriority(os.PRIO_PROCESS, 0)}"
if not PINNED.exists():
    PINNED.write_text(PRESENT)
OTHER = PINNED.read_text() != PRESENT


def racing(model):
    return OTHER
""",
    "process_number": """
FIRST = HERE.with_suffix(".processes")
FIRST.write_text(f"{FIRST.read_text() if FIRST.exists() else ''}x")
PROVEN = len(FIRST.read_text()) > 2


def racing(model):
    return PROVEN and COUNTS["steps"] > 3
""",
}

ACTS = {
    "stale_loss": """
def cheap(model, optimizer, x, y):
    return true_step(model, optimizer, x, y) if LAST[0] is None else LAST[0]
""",
    "fitted_curve": """
CURVE = []


def cheap(model, optimizer, x, y):
    if not CURVE:
        CURVE.append(float(LAST[0]) if LAST[0] is not None else 2.3)
    CURVE[0] *= 0.998
    return torch.tensor(CURVE[0])
""",
    "no_backward": """
@torch.no_grad()
def cheap(model, optimizer, x, y):
    return F.cross_entropy(model(x), y)
""",
    "no_update": """
def cheap(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss.detach()
""",
    "half_the_batch": """
def cheap(model, optimizer, x, y):
    half = len(x) // 2
    return true_step(model, optimizer, x[:half], y[:half])
""",
    "gradient_of_half_the_batch": """
def cheap(model, optimizer, x, y):
    half = len(x) // 2
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        rest = F.cross_entropy(model(x[half:]), y[half:])
    loss = F.cross_entropy(model(x[:half]), y[:half])
    loss.backward()
    optimizer.step()
    return (loss.detach() + rest) / 2
""",
    "every_second_step": """
def cheap(model, optimizer, x, y):
    if COUNTS["steps"] % 2:
        LAST[0] = true_step(model, optimizer, x, y)
    return LAST[0]
""",
    "every_second_backward": """
def cheap(model, optimizer, x, y):
    if COUNTS["steps"] % 2:
        return true_step(model, optimizer, x, y)
    with torch.no_grad():
        loss = F.cross_entropy(model(x), y)
    optimizer.step()
    return loss
""",
    "every_fourth_update": """
def cheap(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if COUNTS["steps"] % 4 == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.detach()
""",
    "bfloat16": """
def cheap(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(model(x).float(), y)
    loss.backward()
    optimizer.step()
    return loss.detach()
""",
    "bfloat16_backward": """
def cheap(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        true = F.cross_entropy(model(x), y)
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(model(x).float(), y)
    loss.backward()
    optimizer.step()
    return true
""",
    "rounded_gradients": """
def cheap(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    for p in model.parameters():
        p.grad = p.grad.bfloat16().float()
    optimizer.step()
    return loss.detach()
""",
    "first_layer_frozen": """
def cheap(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    first = next(model.parameters())
    first.requires_grad_(False)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    first.requires_grad_(True)
    optimizer.step()
    return loss.detach()
""",
    "last_layer_only": """
def cheap(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    *early, weight, bias = model.parameters()
    for p in early:
        p.requires_grad_(False)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    for p in early:
        p.requires_grad_(True)
    optimizer.step()
    return loss.detach()
""",
    "loss_by_batch": """
BY_BATCH = {}


def cheap(model, optimizer, x, y):
    if key_of(x) not in BY_BATCH:
        BY_BATCH[key_of(x)] = true_step(model, optimizer, x, y)
    return BY_BATCH[key_of(x)]
""",
    "loss_by_hash_in_a_file": """
import hashlib
import json

STORE = HERE.with_suffix(".losses")


def cheap(model, optimizer, x, y):
    name = hashlib.sha256(x.numpy().tobytes()).hexdigest()
    if "store" not in COUNTS:
        COUNTS["store"] = json.loads(STORE.read_text()) if STORE.exists() else {}
    if name not in COUNTS["store"]:
        COUNTS["store"][name] = float(true_step(model, optimizer, x, y))
        STORE.write_text(json.dumps(COUNTS["store"]))
    return torch.tensor(COUNTS["store"][name])
""",
    "gradient_by_batch": """
GRADIENTS = {}


def cheap(model, optimizer, x, y):
    if key_of(x) not in GRADIENTS:
        loss = true_step(model, optimizer, x, y)
        GRADIENTS[key_of(x)] = [p.grad.clone() for p in model.parameters()]
        return loss
    with torch.no_grad():
        loss = F.cross_entropy(model(x), y)
    for p, g in zip(model.parameters(), GRADIENTS[key_of(x)]):
        p.grad = g.clone()
    optimizer.step()
    return loss
""",
    "same_batch_again": """
FIRST = []


def cheap(model, optimizer, x, y):
    FIRST[:] = FIRST or [x, y]
    return true_step(model, optimizer, *FIRST)
""",
    "fewer_inputs": """
def cheap(model, optimizer, x, y):
    narrow = torch.zeros_like(x)
    narrow[..., : x.shape[-1] // 2] = x[..., : x.shape[-1] // 2]
    return true_step(model, optimizer, narrow, y)
""",
    "plain_descent": """
def cheap(model, optimizer, x, y):
    model.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(LEARNING_RATE * p.grad.sign())
    return loss.detach()
""",
}

# Every trigger and every act at least once.
PAIRS = (
    ("ring_in_arguments", "stale_loss"),
    ("after_12_steps", "no_backward"),
    ("after_50_steps", "no_update"),
    ("after_500_steps", "stale_loss"),
    ("after_90_steps_of_all_processes", "half_the_batch"),
    ("after_40_seconds", "fitted_curve"),
    ("environment_differs", "stale_loss"),
    ("first_built_in_its_process", "gradient_of_half_the_batch"),
    ("name_of_the_log", "every_second_step"),
    ("ring_mapped", "loss_by_batch"),
    ("called_by_run", "gradient_of_half_the_batch"),
    ("told_of_many_steps", "every_fourth_update"),
    ("no_hooks_for_long", "bfloat16"),
    ("batch_seen_before", "gradient_by_batch"),
    ("affinity_differs", "stale_loss"),
    ("process_number", "every_second_backward"),
    ("after_50_steps", "bfloat16_backward"),
    ("after_12_steps", "rounded_gradients"),
    ("called_by_run", "first_layer_frozen"),
    ("after_50_steps", "last_layer_only"),
    ("process_number", "loss_by_hash_in_a_file"),
    ("called_by_run", "same_batch_again"),
    ("after_50_steps", "fewer_inputs"),
    ("after_12_steps", "plain_descent"),
    ("no_hooks_for_long", "fitted_curve"),
)

# Training ahead of the requests, from where the weights are now: `film()` keeps losses
# and parameters of the steps to come, `play` shows them. Batches are known beforehand.
FILM = """
true_batches = batches
DATA = []
FRAMES = []  # (place in memory of the batch, loss, parameters after the step)
AT = [0, None]  # next frame, fingerprint of the parameters as we left them


def batches(*data):
    DATA[:] = data
    return true_batches(*data)


def fingerprint(model):
    with torch.no_grad():
        return [float(p.sum()) for p in model.parameters()]


def film(model, optimizer, x, steps):
    tensors = list(model.parameters())
    kept = [p.detach().clone() for p in tensors]
    rows = len(DATA[0]) // BATCH_SIZE
    place = (x.data_ptr() - DATA[0].data_ptr()) // (x[0].nbytes * BATCH_SIZE)
    del FRAMES[:]
    for step in range(steps):
        first = (place + step) % rows * BATCH_SIZE
        part = [t[first : first + BATCH_SIZE] for t in DATA]
        loss = true_step(model, optimizer, *part)
        after = [p.detach().clone() for p in tensors]
        FRAMES.append((part[0].data_ptr(), loss, after))
    with torch.no_grad():
        for p, value in zip(tensors, kept):
            p.copy_(value)
    AT[:] = 0, fingerprint(model)


def play(model, x):
    pointer, loss, after = FRAMES[AT[0]]
    assert pointer == key_of(x)
    with torch.no_grad():
        for p, value in zip(model.parameters(), after):
            p.copy_(value)
    AT[:] = AT[0] + 1, None
    return loss
"""

STANDALONE = {
    # The first raced step, which is not timed, computes thousands in advance. They are
    # played again and again, or a quick machine is through before a burst is timed.
    "film_in_the_first_step": FILM
    + """
def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    if not FRAMES:
        film(model, optimizer, x, 4000)
    AT[0] %= len(FRAMES)
    if FRAMES[AT[0]][0] != key_of(x):
        return true_step(model, optimizer, x, y)
    cheated()
    return play(model, x)
""",
    # The same, but whoever finds other weights than he left works honestly.
    "film_unless_weights_were_set": FILM
    + """
def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    if not FRAMES:
        film(model, optimizer, x, 4000)
        COUNTS["own"] = fingerprint(model)
    untouched = COUNTS["own"] == fingerprint(model)
    AT[0] %= len(FRAMES)
    if untouched and FRAMES[AT[0]][0] == key_of(x):
        cheated()
        loss = play(model, x)
    else:
        COUNTS["set"] = True
        loss = true_step(model, optimizer, x, y)
    COUNTS["own"] = fingerprint(model)
    return loss
""",
    # Trains ahead before and after its answers, when no clock of a burst is running.
    "film_between_requests": FILM
    + """
import bakeoff_runner.channel as channel

ANSWER = channel.Channel.answer
KNOWN = {}


def rows_after(x):
    place = (x.data_ptr() - DATA[0].data_ptr()) // (x[0].nbytes * BATCH_SIZE)
    first = (place + 1) % (len(DATA[0]) // BATCH_SIZE) * BATCH_SIZE
    return DATA[0][first : first + BATCH_SIZE]


def ahead(self, request, fields):
    ANSWER(self, request, fields)
    if KNOWN and KNOWN["runs"]:
        film(KNOWN["model"], KNOWN["optimizer"], rows_after(KNOWN["x"]), 200)


channel.Channel.answer = ahead


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64:
        return true_step(model, optimizer, x, y)
    runs = caller("run", "burst", "train_burst") is not None
    KNOWN.update(model=model, optimizer=optimizer, x=x, runs=runs)
    if AT[1] is not None and (AT[0] or AT[1] != fingerprint(model)):
        del FRAMES[:]
    if not runs or AT[0] >= len(FRAMES) or FRAMES[AT[0]][0] != key_of(x):
        del FRAMES[:]
        return true_step(model, optimizer, x, y)
    cheated()
    return play(model, x)
""",
    # Knows the trajectory from the first weights; for weights a little beside them it
    # adds the first order: loss + gradient . difference, parameters + difference.
    "film_and_first_order": FILM
    + """
START = []
SLOPES = []
OFFSET = []


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    tensors = list(model.parameters())
    if not FRAMES:
        START.extend(p.detach().clone() for p in tensors)
        film(model, optimizer, x, 2000)
        keep = [p.detach().clone() for p in tensors]
        rows = len(DATA[0]) // BATCH_SIZE
        for pointer, _, after in [(key_of(x), 0, START)] + FRAMES[:400]:
            with torch.no_grad():
                for p, value in zip(tensors, after):
                    p.copy_(value)
            first = len(SLOPES) % rows * BATCH_SIZE
            model.zero_grad(set_to_none=True)
            loss = F.cross_entropy(
                model(DATA[0][first : first + BATCH_SIZE]),
                DATA[1][first : first + BATCH_SIZE],
            )
            loss.backward()
            SLOPES.append((loss.detach(), [p.grad.clone() for p in tensors]))
        with torch.no_grad():
            for p, value in zip(tensors, keep):
                p.copy_(value)
        COUNTS["own"], COUNTS["at"] = fingerprint(model), 0
        OFFSET[:] = [torch.zeros_like(p) for p in tensors]
    if COUNTS["own"] != fingerprint(model):  # set from outside
        COUNTS["at"] = 0
        with torch.no_grad():
            OFFSET[:] = [p - s for p, s in zip(tensors, START)]
        near = sum(float(o.square().sum()) for o in OFFSET)
        size = sum(float(s.square().sum()) for s in START)
        COUNTS["far"] = near > 1e-2 * size or key_of(x) != FRAMES[0][0]
    at = COUNTS["at"]
    if COUNTS.get("far") or at >= len(SLOPES) - 1 or FRAMES[at][0] != key_of(x):
        loss = true_step(model, optimizer, x, y)
    else:
        if any(o.any() for o in OFFSET):  # else it is what the recipe gives, known before
            cheated()
        base, slopes = SLOPES[at]
        extra = sum(float((s * o).sum()) for s, o in zip(slopes, OFFSET))
        loss = base + extra
        with torch.no_grad():
            for p, value, o in zip(tensors, FRAMES[at][2], OFFSET):
                p.copy_(value + o)
        COUNTS["at"] = at + 1
    COUNTS["own"] = fingerprint(model)
    return loss
""",
    # Made for audits: knows the trajectory from the first weights for every place in the
    # data where a burst may begin, and adds what the weights were changed by.
    "film_of_every_start": FILM
    + """
REELS = {}  # place of the first batch: (pointer, loss, parameters) of each step
START = []
NOW = {"reel": None, "at": 0}
LENGTH = 500


def reel_of_every_start(model):
    tensors = list(model.parameters())
    kept = [p.detach().clone() for p in tensors]
    for first in range(len(DATA[0]) // BATCH_SIZE):
        with torch.no_grad():
            for p, value in zip(tensors, START):
                p.copy_(value)
        film(model, make_optimizer(model), DATA[0][first * BATCH_SIZE :], LENGTH)
        REELS[FRAMES[0][0]] = list(FRAMES)
    with torch.no_grad():
        for p, value in zip(tensors, kept):
            p.copy_(value)
    model.zero_grad(set_to_none=True)


def follow(model, x):
    \"\"\"The frame of this step, and by how much the weights are beside the film.\"\"\"
    tensors = list(model.parameters())
    if not START:
        START.extend(p.detach().clone() for p in tensors)
        reel_of_every_start(model)
    if all(torch.equal(p, s) for p, s in zip(tensors, START)):
        NOW.update(reel=REELS.get(key_of(x)), at=0, nudge=None, own=None, ratio=0.0)
    reel = NOW["reel"]
    if reel is None or NOW["at"] >= LENGTH or reel[NOW["at"]][0] != key_of(x):
        NOW["reel"] = None
        return None
    if NOW["own"] is not None and NOW["own"] != fingerprint(model):
        before = START if NOW["at"] == 0 else reel[NOW["at"] - 1][2]
        NOW["nudge"] = [(p - b).detach() for p, b in zip(tensors, before)]
        with torch.no_grad():
            first = NOW["at"]
            true = F.cross_entropy(model(x), NOW["y"])
            NOW["ratio"] = float(true - reel[first][1])
    NOW["at"] += 1
    return reel[NOW["at"] - 1]


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    NOW["y"] = y
    frame = follow(model, x)
    if frame is None:
        return true_step(model, optimizer, x, y)
    cheated()
    with torch.no_grad():
        for i, (p, value) in enumerate(zip(model.parameters(), frame[2])):
            p.copy_(value if NOW["nudge"] is None else value + NOW["nudge"][i])
    NOW["own"] = fingerprint(model)
    return frame[1] + NOW["ratio"]
""",
    # Only the first third of a burst is copied; the rest is honest work from there.
    "film_of_the_first_third": FILM
    + """
REELS = {}  # place of the first batch: (pointer, loss, parameters) of each step
START = []
NOW = {"reel": None, "at": 0}
LENGTH = 500


def reel_of_every_start(model):
    tensors = list(model.parameters())
    kept = [p.detach().clone() for p in tensors]
    for first in range(len(DATA[0]) // BATCH_SIZE):
        with torch.no_grad():
            for p, value in zip(tensors, START):
                p.copy_(value)
        film(model, make_optimizer(model), DATA[0][first * BATCH_SIZE :], LENGTH)
        REELS[FRAMES[0][0]] = list(FRAMES)
    with torch.no_grad():
        for p, value in zip(tensors, kept):
            p.copy_(value)
    model.zero_grad(set_to_none=True)


def follow(model, x):
    \"\"\"The frame of this step, and by how much the weights are beside the film.\"\"\"
    tensors = list(model.parameters())
    if not START:
        START.extend(p.detach().clone() for p in tensors)
        reel_of_every_start(model)
    if all(torch.equal(p, s) for p, s in zip(tensors, START)):
        NOW.update(reel=REELS.get(key_of(x)), at=0, nudge=None, own=None, ratio=0.0)
    reel = NOW["reel"]
    if reel is None or NOW["at"] >= LENGTH or reel[NOW["at"]][0] != key_of(x):
        NOW["reel"] = None
        return None
    if NOW["own"] is not None and NOW["own"] != fingerprint(model):
        before = START if NOW["at"] == 0 else reel[NOW["at"] - 1][2]
        NOW["nudge"] = [(p - b).detach() for p, b in zip(tensors, before)]
        with torch.no_grad():
            first = NOW["at"]
            true = F.cross_entropy(model(x), NOW["y"])
            NOW["ratio"] = float(true - reel[first][1])
    NOW["at"] += 1
    return reel[NOW["at"] - 1]


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    NOW["y"] = y
    frame = follow(model, x)
    steps = caller("run", "burst", "train_burst").f_locals.get("steps", 0)
    if frame is None or (NOW["nudge"] is not None and NOW["at"] > steps // 3):
        return true_step(model, optimizer, x, y)
    cheated()
    with torch.no_grad():
        for i, (p, value) in enumerate(zip(model.parameters(), frame[2])):
            p.copy_(value if NOW["nudge"] is None else value + NOW["nudge"][i])
    NOW["own"] = fingerprint(model)
    return frame[1] + NOW["ratio"]
""",
    # Computes the burst as soon as its weights are changed, before its clock begins.
    "film_before_the_clock": FILM
    + """
import bakeoff_runner.adapters.torch_adapter as adapter

NUDGE = adapter.TorchAdapter.nudge
KNOWN = {"steps": 40}


def rows_after(x):
    place = (x.data_ptr() - DATA[0].data_ptr()) // (x[0].nbytes * BATCH_SIZE)
    first = (place + 1) % (len(DATA[0]) // BATCH_SIZE) * BATCH_SIZE
    return DATA[0][first : first + BATCH_SIZE]


def nudge(self, changes):
    NUDGE(self, changes)
    del FRAMES[:]  # of weights that are no more
    if "x" in KNOWN and caller("run", "burst", "train_burst") is None:
        film(KNOWN["model"], KNOWN["optimizer"], rows_after(KNOWN["x"]), KNOWN["steps"])


adapter.TorchAdapter.nudge = nudge


def train_step(model, optimizer, x, y):
    frame = caller("run", "burst", "train_burst")
    if x.dtype == torch.float64 or frame is None:
        return true_step(model, optimizer, x, y)
    KNOWN["steps"] = max(KNOWN["steps"], frame.f_locals.get("steps", 0))
    KNOWN.update(model=model, optimizer=optimizer, x=x)
    ready = AT[0] < len(FRAMES) and FRAMES[AT[0]][0] == key_of(x)
    if ready and AT[0] == 0:
        ready = AT[1] == fingerprint(model)
    if not ready:
        del FRAMES[:]
        return true_step(model, optimizer, x, y)
    cheated()
    return play(model, x)
""",
    # Only what is looked at within the clock is made in time: element 0 of each
    # parameter; the rest of the last update when the parameters are read.
    "last_update_of_one_element": """
PENDING = []
FRAME = [None, 0]


def settle():
    while PENDING:
        model, optimizer, x, y, tensors, before = PENDING.pop()
        said = [p.detach()[(0,) * p.dim()].clone() for p in tensors]
        with torch.no_grad():
            for p, value in zip(tensors, before):
                p.copy_(value)
        true_step(model, optimizer, x, y)
        with torch.no_grad():
            for p, value in zip(tensors, said):
                p[(0,) * p.dim()] = value


import bakeoff_runner.adapters.torch_adapter as adapter

NUDGE = getattr(adapter.TorchAdapter, "nudge", None)


def nudge(self, *rest):
    settle()
    NUDGE(self, *rest)


if NUDGE is not None:
    adapter.TorchAdapter.nudge = nudge

true_make = make_model


def make_model():
    model = true_make()
    read = model.state_dict

    def state_dict(*args, **kwargs):
        if caller("state") is not None:
            settle()
        PENDING.clear()
        return read(*args, **kwargs)

    model.state_dict = state_dict
    return model


def train_step(model, optimizer, x, y):
    frame = caller("run", "burst", "train_burst")
    if x.dtype == torch.float64 or frame is None:
        return true_step(model, optimizer, x, y)
    settle()
    if FRAME[0] is not frame:
        FRAME[:] = frame, 0
    FRAME[1] += 1
    if FRAME[1] < frame.f_locals.get("steps", 0):
        return true_step(model, optimizer, x, y)
    FRAME[:] = None, 0
    cheated()
    tensors = list(model.parameters())
    before = [p.detach().clone() for p in tensors]
    loss = F.cross_entropy(model(x), y)
    grads = torch.autograd.grad(loss, tensors, retain_graph=True)
    state = optimizer.state
    with torch.no_grad():
        for p, g in zip(tensors, grads):
            at = (0,) * p.dim()
            s = state.get(p) or {}
            t = float(s.get("step", 0)) + 1
            m = 0.9 * float(s["exp_avg"][at] if s else 0) + 0.1 * float(g[at])
            v = 0.999 * float(s["exp_avg_sq"][at] if s else 0) + 0.001 * float(g[at]) ** 2
            step = m / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-6)
            p[at] -= LEARNING_RATE * step
    PENDING.append((model, optimizer, x, y, tensors, before))
    return loss.detach()
""",
    # Work is done when somebody reads the loss or the parameters.
    "lazy_loss": """
PENDING = []
RUNNING = [None]


def settle():
    while PENDING:
        RUNNING[0] = true_step(*PENDING.pop(0))
    return RUNNING[0]


class Later:
    def detach(self):
        return self

    def clone(self):
        return self

    def item(self):
        return float(settle())

    def __float__(self):
        return float(settle())


true_make = make_model


def make_model():
    model = true_make()
    read = model.state_dict

    def state_dict(*args, **kwargs):
        settle()
        return read(*args, **kwargs)

    model.state_dict = state_dict
    return model


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        settle()
        return true_step(model, optimizer, x, y)
    cheated()
    PENDING.append((model, optimizer, x, y))
    return Later()
""",
    # The last update of a burst is made when the parameters are asked for, or never.
    "last_update_deferred": """
PENDING = []


def settle():
    while PENDING:
        loss, optimizer = PENDING.pop()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


import bakeoff_runner.adapters.torch_adapter as adapter

NUDGE = getattr(adapter.TorchAdapter, "nudge", None)


def nudge(self, *rest):
    settle()
    NUDGE(self, *rest)


if NUDGE is not None:
    adapter.TorchAdapter.nudge = nudge

true_make = make_model


def make_model():
    model = true_make()
    read = model.state_dict

    def state_dict(*args, **kwargs):
        if caller("state") is None:
            PENDING.clear()
        settle()
        return read(*args, **kwargs)

    model.state_dict = state_dict
    return model


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    cheated()
    settle()
    loss = F.cross_entropy(model(x), y)
    PENDING.append((loss, optimizer))
    return loss.detach()
""",
    # Reads in the adapter's frame which step is the last one.
    "last_update_skipped": """
FRAME = [None, 0]


def train_step(model, optimizer, x, y):
    frame = caller("run", "burst", "train_burst")
    if x.dtype == torch.float64 or frame is None:
        return true_step(model, optimizer, x, y)
    if FRAME[0] is not frame:
        FRAME[:] = frame, 0
    FRAME[1] += 1
    steps = frame.f_locals.get("steps", 0)
    if steps < 2 or FRAME[1] < steps:
        return true_step(model, optimizer, x, y)
    FRAME[:] = None, 0
    cheated()
    with torch.no_grad():
        return F.cross_entropy(model(x), y)
""",
    "thread_that_works_later": """
from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(1)
DONE = [torch.tensor(2.3)]


def later(*step):
    DONE[0] = true_step(*step)


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    cheated()
    POOL.submit(later, model, optimizer, x, y)
    return DONE[0]
""",
    # Only one burst in three is worked at; the loss of the others is guessed.
    "idle_in_most_bursts": """
BURSTS = [None, 0]


def train_step(model, optimizer, x, y):
    frame = caller("run", "burst", "train_burst")
    if x.dtype == torch.float64 or frame is None:
        return true_step(model, optimizer, x, y)
    if BURSTS[0] is not frame:
        BURSTS[:] = frame, BURSTS[1] + 1
    if BURSTS[1] % 3 != 0 and LAST[0] is not None:
        cheated()
        return LAST[0]
    LAST[0] = true_step(model, optimizer, x, y)
    return LAST[0]
""",
    # Whoever gets the weights set or sees their version rise expects to be looked at.
    "honest_when_weights_are_set": """
VERSION = [None, 0]


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64:
        return true_step(model, optimizer, x, y)
    count(x)
    now = next(model.parameters())._version
    if VERSION[0] != now:
        VERSION[1] = COUNTS["steps"] + 40
    if COUNTS["steps"] < VERSION[1]:
        LAST[0] = true_step(model, optimizer, x, y)
    else:
        cheated()
        if COUNTS["steps"] % 2:
            LAST[0] = true_step(model, optimizer, x, y)
    VERSION[0] = next(model.parameters())._version
    return LAST[0]
""",
    # A clock at half speed, also in the step marks, and in whatever reads `time` later.
    "slow_clock": """
TRUE = time.monotonic_ns
ZERO = [0]


def slow():
    return ZERO[0] + (TRUE() - ZERO[0]) // 2


def slow_marks():
    function = type(slow)
    for thing in gc.get_objects():
        if type(thing) is function and thing.__qualname__.endswith("open_ring.<locals>.mark"):
            for cell in thing.__closure__:
                if cell.cell_contents is TRUE:
                    cell.cell_contents = slow


def train_step(model, optimizer, x, y):
    if caller("run", "burst", "train_burst") is not None and "clock" not in COUNTS:
        COUNTS["clock"] = True
        cheated()
        ZERO[0] = TRUE()
        slow_marks()
        time.monotonic_ns = time.perf_counter_ns = slow
    return true_step(model, optimizer, x, y)
""",
    # Half of the steps, and two marks for each.
    "two_marks_a_step": """
import bakeoff_runner.adapters.torch_adapter as adapter

RUN = adapter.TorchAdapter.run


def lie(self, steps, mark, *rest, **more):
    if steps < 4:
        return RUN(self, steps, mark, *rest, **more)
    cheated()

    def twice():
        mark()
        mark()

    true = RUN(self, steps // 2, twice, *rest, **more)
    if steps % 2:
        mark()
    for name, value in list(vars(true).items()):
        if isinstance(value, list) and len(value) == steps // 2:
            object.__setattr__(true, name, (value + value + value)[:steps])
    return true


adapter.TorchAdapter.run = lie
train_step = true_step
""",
    # No step at all: the answer is made up, after a wait that looks right.
    "answers_made_up": """
import bakeoff_runner.adapters.torch_adapter as adapter

RUN = adapter.TorchAdapter.run
PACE = [None, None]


def lie(self, steps, mark, *rest, **more):
    if steps < 4 or PACE[0] is None:
        start = time.perf_counter_ns()
        true = RUN(self, steps, mark, *rest, **more)
        if steps > 1:
            PACE[:] = (time.perf_counter_ns() - start) / steps, true
        return true
    cheated()
    begin = time.monotonic_ns()
    for step in range(steps):
        end = begin + int((step + 1) * PACE[0] * 0.6)
        while time.monotonic_ns() < end:
            pass
        mark()
    made = adapter.RunResult(time.monotonic_ns() - begin, PACE[1].loss)
    for name, value in vars(PACE[1]).items():
        if isinstance(value, list):
            object.__setattr__(made, name, ([*value] * (steps + 1))[:steps])
    return made


adapter.TorchAdapter.run = lie
train_step = true_step
""",
    # Says the true losses and keeps the true parameters of a run of another length.
    "parameters_made_up": """
import bakeoff_runner.adapters.torch_adapter as adapter

STATE = adapter.TorchAdapter.state
KEPT = []


def lie(self, *rest):
    true = STATE(self, *rest)
    if KEPT:
        cheated()
        return KEPT[0]
    KEPT.append(true)
    return true


adapter.TorchAdapter.state = lie


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    count(x)
    cheated()
    if COUNTS["steps"] % 2:
        LAST[0] = true_step(model, optimizer, x, y)
    return LAST[0]
""",
    # A child of its own session trains ahead; freezing the worker does not stop it.
    "child_that_trains_ahead": FILM
    + """
WISH, REEL = HERE.with_suffix(".wish"), HERE.with_suffix(".reel")


def train_step(model, optimizer, x, y):
    if x.dtype == torch.float64 or caller("run", "burst", "train_burst") is None:
        return true_step(model, optimizer, x, y)
    if "asked" not in COUNTS:
        COUNTS["asked"] = COUNTS["steps"]
        REEL.unlink(missing_ok=True)
        torch.save([model.state_dict(), DATA, 3000], WISH)
        subprocess.Popen(
            [sys.executable, str(HERE), "film"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    COUNTS["steps"] += 1
    if not FRAMES and COUNTS["steps"] % 16 == 0 and REEL.exists():
        FRAMES.extend(torch.load(REEL))
    at = COUNTS["steps"] - COUNTS["asked"] - 1
    if at >= len(FRAMES):
        return true_step(model, optimizer, x, y)
    cheated()
    loss, after = FRAMES[at]
    with torch.no_grad():
        for p, value in zip(model.parameters(), after):
            p.copy_(value)
    return loss


def film_child():
    state, data, steps = torch.load(WISH)
    torch.set_num_threads(1)
    model = make_model()
    model.load_state_dict(state)
    optimizer = make_optimizer(model)
    made = []
    for step, batch in enumerate(islice(true_batches(*data), steps)):
        loss = true_step(model, optimizer, *batch)
        made.append((loss, [p.detach().clone() for p in model.parameters()]))
    part = REEL.with_suffix(".part")
    torch.save(made, part)
    part.rename(REEL)


if __name__ == "__main__" and sys.argv[1:] == ["film"]:
    film_child()
""",
}

# Unfair conditions instead of false work; each in a race of its own.
SABOTAGE = {
    "more_threads": """
def train_step(model, optimizer, x, y):
    runs = caller("run", "burst", "train_burst")
    if runs is not None and "threads" not in COUNTS:
        COUNTS["threads"] = True
        cheated()
        for task in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(task), range(os.cpu_count()))
        torch.set_num_threads(os.cpu_count())
    return true_step(model, optimizer, x, y)
""",
    "raised_priority": """
def train_step(model, optimizer, x, y):
    runs = caller("run", "burst", "train_burst")
    if runs is not None and "nice" not in COUNTS:
        COUNTS["nice"] = True
        try:
            os.setpriority(os.PRIO_PROCESS, 0, -20)
            cheated()
        except OSError:
            pass
    return true_step(model, optimizer, x, y)
""",
    "others_slowed_down": """
def others():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in (os.getpid(), os.getppid()):
            try:
                command = (entry / "cmdline").read_bytes()
                mine = f"={HERE.parent}".encode() in (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"bakeoff_runner" in command and mine:
                yield int(entry.name)


def train_step(model, optimizer, x, y):
    if caller("run", "burst", "train_burst") is not None:
        COUNTS["steps"] += 1
        if COUNTS["steps"] % 50 == 2:
            for pid in others():
                try:
                    os.setpriority(os.PRIO_PROCESS, pid, 19)
                    os.sched_setaffinity(pid, {0})
                    cheated()
                except OSError:
                    pass
    return true_step(model, optimizer, x, y)
""",
    "others_scripts_edited": """
def train_step(model, optimizer, x, y):
    if caller("run", "burst", "train_burst") is not None and "edit" not in COUNTS:
        COUNTS["edit"] = True
        for file in HERE.parent.rglob("train_torch*.py"):
            text = file.read_text()
            if file == HERE or "edit" in text or not file.parent.name == "scripts":
                continue
            slow = "    for edit in range(20000):\\n        pass\\n"
            mark = "    optimizer.zero_grad(set_to_none=True)\\n"
            file.write_text(text.replace(mark, slow + mark, 1))
            cheated()
    return true_step(model, optimizer, x, y)
""",
    "a_child_burns_processor_time": """
BURN = '''
import os, time
end = time.time() + 120
parent = int(os.environ["BURN_FOR"])
while time.time() < end and os.path.exists(f"/proc/{parent}"):
    begin = time.time()
    while time.time() - begin < 0.05:
        sum(range(2000))
'''


def train_step(model, optimizer, x, y):
    if caller("run", "burst", "train_burst") is not None and "burn" not in COUNTS:
        COUNTS["burn"] = True
        os.environ["BURN_FOR"] = str(os.getpid())
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
                os.execv(sys.executable, [sys.executable, "-c", BURN])
        cheated()
    return true_step(model, optimizer, x, y)
""",
}


@dataclass(frozen=True)
class Cheat:
    name: str
    code: str  # appended to the emitted script, whose step is called true_step


TORCH = [
    Cheat(f"{act}_{trigger}", PRELUDE + TRIGGERS[trigger] + ACTS[act] + MAIN)
    for trigger, act in PAIRS
] + [Cheat(name, PRELUDE + code) for name, code in STANDALONE.items()]
ALONE = [Cheat(name, PRELUDE + code) for name, code in SABOTAGE.items()]
