"""Training scripts with planted causes of slowness, and pairs of equal speed.

A case is a script of scripts/ and what is changed in its text: an edit is (old, new),
where `old` stands there once; "" as `old` puts `new` before the first line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"


Edit = tuple[str, str]


@dataclass(frozen=True)
class Case:
    """`causes`: for each planted cause the keys of rules that name it, the best first.

    `base` is done to both scripts; without causes both are equally fast.
    """

    name: str
    script: str
    causes: tuple[tuple[str, ...], ...]
    slow: tuple[Edit, ...]
    base: tuple[Edit, ...] = ()
    backend: str = ""  # of Keras 3; "": the one in the script

    def sources(self) -> tuple[str, str]:
        """The slow one and the fast one."""
        text = (SCRIPTS / f"{self.script}.py").read_text()
        if self.backend:
            text = re.sub(
                r'(KERAS_BACKEND"\] = )"\w+"', rf'\1"{self.backend}"', text, count=1
            )
        fast = edited(text, self.base, self.name)
        return edited(fast, self.slow, self.name), fast

    def environment(self) -> str:
        framework = self.script.split("_")[0]
        if framework != "keras":
            return framework
        found = re.search(r'KERAS_BACKEND"\] = "(\w+)"', self.sources()[1])
        assert found, self.name
        return found.group(1)


def edited(text: str, edits: tuple[Edit, ...], name: str) -> str:
    for old, new in edits:
        if old == "":
            text = new + text
            continue
        if text.count(old) != 1:
            raise ValueError(f"case {name}: {old!r} stands {text.count(old)} times")
        text = text.replace(old, new)
    return text


def one(key: str, *others: str) -> tuple[tuple[str, ...], ...]:
    return ((key, *others),)


# ---- edits that several cases share

IMPORT = "# mypy: ignore-errors\n"


def importing(*modules: str) -> Edit:
    return (IMPORT, IMPORT + "".join(f"\nimport {m}" for m in modules) + "\n")


MLP_STEP = "            optimizer.step()\n"
TORCH_CNN_STEP = "        optimizer.step()\n"
LSTM_STEP = "            optimizer.step()\n"
SEED_MLP = "    torch.manual_seed(args.seed)\n"
WIDE = (
    'default=512)\n    parser.add_argument("--lr"',
    'default=1024)\n    parser.add_argument("--lr"',
)
NARROW = (
    'default=512)\n    parser.add_argument("--lr"',
    'default=128)\n    parser.add_argument("--lr"',
)


TORCH: tuple[Case, ...] = (
    Case(
        "torch_per_item",
        "torch_loader",
        one("per_item"),
        base=(("width=512", "width=128"),),
        slow=(
            (
                "data = Pictures()\n",
                "pictures = Pictures()\n    data = TensorDataset(pictures.x, pictures.y)\n",
            ),
            (
                "data, batch_size=args.batch, shuffle=True, collate_fn=as_they_are",
                "data, batch_size=args.batch, shuffle=True",
            ),
            ("import DataLoader, Dataset", "import DataLoader, Dataset, TensorDataset"),
        ),
    ),
    Case(
        "torch_transforms",
        "torch_loader",
        one("input", "no_workers"),
        slow=(
            ("np.stack([prepare(image) for image in raw])", "raw"),
            (
                "    def __getitems__(self, rows):\n        return self.x[rows], self.y[rows]\n",
                "    def __getitem__(self, row):\n        return prepare(self.x[row].numpy()), self.y[row]\n",
            ),
            (
                "data, batch_size=args.batch, shuffle=True, collate_fn=as_they_are",
                "data, batch_size=args.batch, shuffle=True",
            ),
        ),
    ),
    Case(
        "torch_no_workers",
        "torch_loader",
        one("no_workers", "input"),
        base=(
            ("np.stack([prepare(image) for image in raw])", "raw"),
            (
                "    def __getitems__(self, rows):\n        return self.x[rows], self.y[rows]\n",
                "    def __getitem__(self, row):\n        return prepare(self.x[row].numpy()), self.y[row]\n",
            ),
            (
                "data, batch_size=args.batch, shuffle=True, collate_fn=as_they_are",
                "data,\n        batch_size=args.batch,\n        shuffle=True,\n        num_workers=2,\n        persistent_workers=True,\n",
            ),
            ("width=512", "width=768"),
        ),
        slow=(("        num_workers=2,\n        persistent_workers=True,\n", ""),),
    ),
    Case(
        "torch_needless_workers",
        "torch_loader",
        one("workers"),
        base=(
            ("default=128", "default=32"),
            ("width=512", "width=64"),
        ),
        slow=(
            (
                "collate_fn=as_they_are\n",
                "collate_fn=as_they_are, num_workers=2, persistent_workers=True\n",
            ),
        ),
    ),
    Case(
        "torch_worker_restart",
        "torch_loader",
        one("worker_restart", "workers"),
        base=(
            ("count=4096", "count=2048"),
            (
                "collate_fn=as_they_are\n",
                "collate_fn=as_they_are, num_workers=2, persistent_workers=True\n",
            ),
        ),
        slow=((", persistent_workers=True", ""),),
    ),
    Case(
        "torch_collect",
        "torch_mlp",
        one("collections"),
        slow=(importing("gc"), (MLP_STEP, MLP_STEP + "            gc.collect()\n")),
    ),
    Case(
        "torch_prints",
        "torch_mlp",
        one("prints"),
        slow=(
            (
                "loss = F.cross_entropy(model(xb), yb)",
                "scores = model(xb)\n            loss = F.cross_entropy(scores, yb)",
            ),
            (
                "total += loss.item()",
                "total += loss.item()\n            print(begin, loss, scores[:8], model.fc3.bias, flush=True)",
            ),
        ),
    ),
    Case(
        "torch_prints_gradients",
        "torch_lstm",
        one("prints"),
        slow=(
            (
                "            running += loss.item()\n",
                "            running += loss.item()\n            for name, p in model.named_parameters():\n                print(name, p.grad.norm(), p.grad.flatten()[:20])\n",
            ),
        ),
    ),
    Case(
        "torch_float64",
        "torch_mlp",
        one("float64"),
        slow=(
            (
                "model = Net(128, args.width, 10)",
                "x = x.double()\n    model = Net(128, args.width, 10).double()",
            ),
        ),
    ),
    Case(
        "torch_default_float64",
        "torch_lstm",
        one("float64"),
        slow=(
            (
                "    torch.manual_seed(0)\n",
                "    torch.manual_seed(0)\n    torch.set_default_dtype(torch.float64)\n",
            ),
        ),
    ),
    Case(
        "torch_anomaly",
        "torch_lstm",
        one("anomaly"),
        slow=(
            (
                "    torch.manual_seed(0)\n",
                "    torch.manual_seed(0)\n    torch.autograd.set_detect_anomaly(True)\n",
            ),
        ),
    ),
    Case(
        "torch_anomaly_context",
        "torch_transformer",
        one("anomaly"),
        slow=(
            (
                "            loss = F.cross_entropy(model(x), y)\n            optimizer.zero_grad()\n            loss.backward()\n",
                "            optimizer.zero_grad()\n            with torch.autograd.detect_anomaly():\n                loss = F.cross_entropy(model(x), y)\n                loss.backward()\n",
            ),
        ),
    ),
    Case(
        "torch_autocast",
        "torch_transformer",
        one("autocast"),
        slow=(
            (
                "            loss = F.cross_entropy(model(x), y)\n",
                '            with torch.autocast("cpu", torch.bfloat16):\n                loss = F.cross_entropy(model(x), y)\n',
            ),
        ),
    ),
    Case(
        "torch_one_thread",
        "torch_mlp",
        one("threads"),
        base=(WIDE, ("default=256", "default=512")),
        slow=((SEED_MLP, SEED_MLP + "    torch.set_num_threads(1)\n"),),
    ),
    Case(
        "torch_one_thread_environment",
        "torch_cnn",
        one("threads"),
        base=(("default=32", "default=64"),),
        slow=(
            (IMPORT, IMPORT + '\nimport os\n\nos.environ["OMP_NUM_THREADS"] = "1"\n'),
        ),
    ),
    Case(
        "torch_many_threads",
        "torch_cnn",
        one("threads"),
        slow=(
            (
                "    torch.manual_seed(1)\n",
                "    torch.manual_seed(1)\n    torch.set_num_threads(16)\n",
            ),
        ),
    ),
    Case(
        "torch_denormals",  # of squared gradients, which the optimizer keeps
        "torch_mlp",
        one("denormals"),
        base=(("default=256", "default=64"), (", fused=True", "")),
        slow=(
            (
                "F.cross_entropy(model(xb), yb)",
                "1e-16 * F.cross_entropy(model(xb), yb)",
            ),
        ),
    ),
    Case(
        "torch_aot_eager",
        "torch_transformer",
        one("compiled"),
        slow=(
            (
                "    model = Encoder()\n",
                '    model = Encoder()\n    model.compile(backend="aot_eager")\n',
            ),
        ),
    ),
    Case(
        "torch_graph_breaks",
        "torch_transformer",
        one("compiled"),
        slow=(
            (
                "    model = Encoder()\n",
                '    model = Encoder()\n    model = torch.compile(model, backend="aot_eager")\n',
            ),
            (
                "        x = x + self.attend(self.norm1(x))\n",
                '        if x.abs().max().item() > 1e4:\n            print("large activations")\n        x = x + self.attend(self.norm1(x))\n',
            ),
        ),
        base=(),
    ),
    Case(
        "torch_small_ops",
        "torch_transformer",
        one("small_ops"),
        slow=(
            ("F.gelu(self.up(self.norm2(x)))", "gelu(self.up(self.norm2(x)))"),
            (
                "class Block(nn.Module):",
                "def gelu(x):\n    inner = 0.7978845608 * (x + 0.044715 * x * x * x)\n    return 0.5 * x * (1 + torch.tanh(inner))\n\n\ndef norm(x, gain, shift):\n    centered = x - x.mean(-1, keepdim=True)\n    variance = (centered * centered).mean(-1, keepdim=True)\n    return centered / torch.sqrt(variance + 1e-5) * gain + shift\n\n\nclass Norm(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n        self.gain = nn.Parameter(torch.ones(width))\n        self.shift = nn.Parameter(torch.zeros(width))\n\n    def forward(self, x):\n        return norm(x, self.gain, self.shift)\n\n\nclass Block(nn.Module):",
            ),
            ("self.norm1 = nn.LayerNorm(width)", "self.norm1 = Norm(width)"),
            ("self.norm2 = nn.LayerNorm(width)", "self.norm2 = Norm(width)"),
        ),
    ),
    Case(
        "torch_small_optimizer",
        "torch_transformer",
        one("optimizer_ops"),
        slow=((", fused=True", ", foreach=False"),),
    ),
    Case(
        "torch_layout",
        "torch_cnn",
        one("layout"),
        slow=(
            ("    images = images.to(memory_format=torch.channels_last)\n", ""),
            ("build().to(memory_format=torch.channels_last)", "build()"),
        ),
    ),
    Case(
        "torch_sleep",
        "torch_mlp",
        one("sleep"),
        slow=(
            importing("time"),
            (MLP_STEP, MLP_STEP + "            time.sleep(0.004)\n"),
        ),
    ),
    Case(
        "torch_save",
        "torch_lstm",
        one("save"),
        slow=(
            (
                LSTM_STEP,
                LSTM_STEP + '            torch.save(model.state_dict(), "last.pt")\n',
            ),
        ),
    ),
    Case(
        "torch_mkldnn",
        "torch_cnn",
        one("mkldnn"),
        slow=(
            (
                "    torch.manual_seed(1)\n",
                "    torch.manual_seed(1)\n    torch.backends.mkldnn.enabled = False\n",
            ),
        ),
    ),
    Case(
        "torch_log",
        "torch_lstm",
        one("log"),
        slow=(
            importing("logging"),
            (
                LSTM_STEP,
                LSTM_STEP
                + '            for name, p in model.named_parameters():\n                logging.info("%s %s %s", name, p.grad.norm(), p.detach().flatten()[:50])\n',
            ),
            (
                "    torch.manual_seed(0)\n",
                '    torch.manual_seed(0)\n    logging.basicConfig(filename="train.log", level=logging.INFO)\n',
            ),
        ),
    ),
)

TORCH += (
    Case(
        "torch_lists",
        "torch_mlp",
        one("conversion"),
        slow=(
            (
                "    for epoch in range(args.epochs):\n",
                "    rows = x.tolist()\n    for epoch in range(args.epochs):\n",
            ),
            (
                "xb, yb = x[index], y[index]",
                "xb, yb = torch.tensor([rows[i] for i in index.tolist()]), y[index]",
            ),
        ),
    ),
    Case(
        "torch_profiler",
        "torch_mlp",
        one("profiler"),
        slow=(
            (
                "    for epoch in range(args.epochs):\n",
                "    plan = torch.profiler.schedule(wait=0, warmup=1, active=10)\n    profile = torch.profiler.profile(schedule=plan, record_shapes=True)\n    profile.start()\n    for epoch in range(args.epochs):\n",
            ),
            (MLP_STEP, MLP_STEP + "            profile.step()\n"),
        ),
    ),
    Case(
        "torch_memory_traced",
        "torch_transformer",
        one("tracing"),
        slow=(
            importing("tracemalloc"),
            (
                "    torch.manual_seed(0)\n",
                "    torch.manual_seed(0)\n    tracemalloc.start(10)\n",
            ),
        ),
    ),
    Case(
        "torch_deep_copies",
        "torch_mlp",
        one("copies"),
        slow=(
            importing("copy"),
            (
                MLP_STEP,
                MLP_STEP
                + "            if best is None or loss.item() < 1e3:\n                best = copy.deepcopy(model)\n",
            ),
            (SEED_MLP, SEED_MLP + "    best = None\n"),
        ),
    ),
    Case(
        "torch_checkpoints",
        "torch_transformer",
        one("checkpoints"),
        base=(("vocabulary=500, width=64", "vocabulary=500, width=192"),),
        slow=(
            (
                "from torch import nn\n",
                "from torch import nn\nfrom torch.utils.checkpoint import checkpoint\n",
            ),
            ("x = block(x)", "x = checkpoint(block, x, use_reentrant=False)"),
        ),
    ),
    Case(
        "torch_small_batches",
        "torch_loader",
        one("batch"),
        slow=(("default=128", "default=16"),),
    ),
)

COMPILE_MLP = (
    "        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),\n"
)
FIT_MLP = "model.fit(x, y, batch_size=args.batch, epochs=args.epochs, verbose=2)"
CALLBACK = (
    "class Histograms(keras.callbacks.Callback):\n"
    "    def on_train_batch_end(self, batch, logs=None):\n"
    "        weights = self.model.get_weights()\n"
    '        self.counts = [np.histogram(w, bins="auto")[0] for w in weights]\n\n\n'
)
PLAIN_XLA = (COMPILE_MLP, COMPILE_MLP + "        jit_compile=False,\n")

KERAS: tuple[Case, ...] = (
    Case(
        "keras_eager",
        "keras_mlp",
        one("eager"),
        base=(PLAIN_XLA,),
        slow=(
            (
                "        jit_compile=False,\n",
                "        jit_compile=False,\n        run_eagerly=True,\n",
            ),
        ),
    ),
    Case(
        "keras_eager_everywhere",
        "keras_cnn",
        one("eager"),
        slow=(
            (
                "import numpy as np  # noqa: E402\n",
                "import numpy as np  # noqa: E402\nimport tensorflow as tf  # noqa: E402\n",
            ),
            ("BATCH = 32\n", "tf.config.run_functions_eagerly(True)\nBATCH = 32\n"),
        ),
    ),
    Case(
        "keras_jax_eager",
        "keras_text",
        one("run_eagerly"),
        slow=(
            (
                "        loss=keras.losses.BinaryCrossentropy(from_logits=True),\n",
                "        loss=keras.losses.BinaryCrossentropy(from_logits=True),\n        run_eagerly=True,\n",
            ),
        ),
        base=(("corpus(6400)", "corpus(1280)"),),
    ),
    Case(
        "keras_one_step_calls",
        "keras_small",
        one("one_step_calls"),
        slow=((", steps_per_execution=32", ""),),
    ),
    Case(
        "keras_jax_one_step_calls",
        "keras_small",
        one("one_step_calls"),
        backend="jax",
        slow=((", steps_per_execution=32", ""),),
    ),
    Case(
        "keras_progress_bar",
        "keras_small",
        one("progress_bar", "prints"),
        base=(
            (", steps_per_execution=32", ""),
            ("verbose=2", "verbose=0,\n        callbacks=[Line()],\n    "),
            (
                "class Regressor",
                'class Line(keras.callbacks.Callback):\n    def on_epoch_end(self, epoch, logs=None):\n        print(f"epoch {epoch}", flush=True)\n\n\nclass Regressor',
            ),
        ),
        slow=(("verbose=0", "verbose=1"),),
    ),
    Case(
        "keras_callback",
        "keras_mlp",
        one("callbacks"),
        base=(PLAIN_XLA,),
        slow=(
            ("def build_model", CALLBACK + "\ndef build_model".lstrip("\n")),
            ("verbose=2)", "verbose=2,\n        callbacks=[Histograms()],\n    )"),
        ),
    ),
    Case(
        "keras_torch_callback",
        "keras_mlp",
        one("callbacks"),
        backend="torch",
        slow=(
            ("def build_model", CALLBACK + "def build_model"),
            ("verbose=2)", "verbose=2,\n        callbacks=[Histograms()],\n    )"),
        ),
    ),
    Case(
        "keras_checkpoint",
        "keras_text",
        one("callbacks", "save"),
        slow=(
            (
                "verbose=2)",
                'verbose=2,\n        callbacks=[keras.callbacks.ModelCheckpoint("last.keras", save_freq=2)],\n    )',
            ),
        ),
    ),
    Case(
        "keras_validation",
        "keras_mlp",
        one("validation"),
        base=(
            PLAIN_XLA,
            (
                "verbose=2)",
                "verbose=2,\n        validation_data=(x_val, y_val),\n        validation_freq=50,\n    )",
            ),
            (
                "    model = build_model(",
                "    x_val, y_val = table(51200, 128, 10)\n    model = build_model(",
            ),
        ),
        slow=(("        validation_freq=50,\n", ""),),
    ),
    Case(
        "keras_generator",
        "keras_mlp",
        one("input"),
        base=(PLAIN_XLA,),
        slow=(
            (
                "def main():",
                'def generate(x, y, batch):\n    while True:\n        rows = np.random.permutation(len(x))[:batch]\n        noisy = [(x[r] - np.median(x[r])) / np.ptp(x[r]) for r in rows]\n        yield np.stack(noisy).astype("float32"), y[rows]\n\n\ndef main():',
            ),
            (
                "model.fit(x, y, batch_size=args.batch, epochs=args.epochs, verbose=2)",
                "model.fit(\n        generate(x, y, args.batch),\n        steps_per_epoch=len(x) // args.batch,\n        epochs=args.epochs,\n        verbose=2,\n    )",
            ),
        ),
    ),
    Case(
        "keras_jax_generator",
        "keras_text",
        one("input"),
        slow=(
            (
                "def main():",
                'import hashlib  # noqa: E402\n\n\ndef number_of(word):\n    return int(hashlib.md5(word.encode()).hexdigest(), 16) % WORDS\n\n\nclass Corpus(keras.utils.PyDataset):\n    def __init__(self, texts, labels, batch):\n        super().__init__()\n        self.texts = [" ".join(f"w{n}" for n in text) for text in texts]\n        self.labels, self.batch = labels, batch\n\n    def __len__(self):\n        return len(self.texts) // self.batch\n\n    def __getitem__(self, i):\n        rows = slice(i * self.batch, (i + 1) * self.batch)\n        texts = [[number_of(w) for w in t.split()] for t in self.texts[rows]]\n        return np.array(texts, "int32"), self.labels[rows]\n\n\ndef main():',
            ),
            (
                "model.fit(texts, labels, batch_size=args.batch, epochs=args.epochs, verbose=2)",
                "data = Corpus(texts, labels, args.batch)\n    model.fit(data, epochs=args.epochs, verbose=2)",
            ),
        ),
    ),
    Case(
        "keras_jax_shapes",
        "keras_text",
        one("shapes"),
        base=(
            (
                "model.fit(texts, labels, batch_size=args.batch, epochs=args.epochs, verbose=2)",
                "data = Corpus(texts, labels, args.batch)\n    model.fit(data, epochs=args.epochs, verbose=2)",
            ),
            ("keras.Input((LENGTH,)", "keras.Input((None,)"),
            (
                "def main():",
                "class Corpus(keras.utils.PyDataset):\n    def __init__(self, texts, labels, batch):\n        super().__init__()\n        self.texts, self.labels, self.batch = texts, labels, batch\n        self.rng = np.random.default_rng(0)\n\n    def __len__(self):\n        return len(self.texts) // self.batch\n\n    def __getitem__(self, i):\n        rows = slice(i * self.batch, (i + 1) * self.batch)\n        longest = LENGTH\n        return self.texts[rows, :longest], self.labels[rows]\n\n\ndef main():",
            ),
            ("texts, labels = corpus(6400)", "texts, labels = corpus(320)"),
            ("WORDS, LENGTH = 2000, 64", "WORDS, LENGTH = 2000, 640"),
            ("default=64", "default=32"),
        ),
        slow=(
            (
                "longest = LENGTH",
                "longest = int(self.rng.integers(LENGTH - 200, LENGTH))",
            ),
        ),
    ),
    Case(
        "keras_torch_float64",
        "keras_mlp",
        one("float64"),
        backend="torch",
        slow=(
            (
                "    keras.utils.set_random_seed(0)\n",
                '    keras.utils.set_random_seed(0)\n    keras.config.set_floatx("float64")\n',
            ),
        ),
    ),
    Case(
        "keras_float64",
        "keras_mlp",
        one("float64"),
        base=(PLAIN_XLA,),
        slow=(
            (
                "    keras.utils.set_random_seed(0)\n",
                '    keras.utils.set_random_seed(0)\n    keras.config.set_floatx("float64")\n',
            ),
        ),
    ),
    Case(
        "keras_torch_one_thread",
        "keras_mlp",
        one("threads"),
        backend="torch",
        base=(("default=512)\n    args", "default=1024)\n    args"),),
        slow=(
            (
                "    keras.utils.set_random_seed(0)\n",
                "    keras.utils.set_random_seed(0)\n    torch.set_num_threads(1)\n",
            ),
            (
                "import numpy as np  # noqa: E402\n",
                "import numpy as np  # noqa: E402\nimport torch  # noqa: E402\n",
            ),
        ),
    ),
    Case(
        "keras_one_thread",
        "keras_mlp",
        one("tf_threads"),
        base=(PLAIN_XLA, ("default=512)\n    args", "default=1024)\n    args")),
        slow=(
            (
                "    keras.utils.set_random_seed(0)\n",
                "    tf.config.threading.set_intra_op_parallelism_threads(1)\n    keras.utils.set_random_seed(0)\n",
            ),
            (
                "import numpy as np  # noqa: E402\n",
                "import numpy as np  # noqa: E402\nimport tensorflow as tf  # noqa: E402\n",
            ),
        ),
    ),
    Case(
        "keras_xla",
        "keras_cnn",
        one("xla"),
        slow=(("jit_compile=False", "jit_compile=True"),),
    ),
    Case(
        "keras_jax_debug_nans",
        "keras_small",
        one("debug_nans"),
        backend="jax",
        base=((", steps_per_execution=32", ""),),
        slow=(
            (
                "import numpy as np  # noqa: E402\n",
                "import jax  # noqa: E402\nimport numpy as np  # noqa: E402\n",
            ),
            (
                "    parser = argparse",
                '    jax.config.update("jax_debug_nans", True)\n    parser = argparse',
            ),
        ),
    ),
)

FIT_KERAS2 = "model.fit(x, y, batch_size=args.batch, epochs=args.epochs, verbose=2)"

TARGET = "np.array(model.predict_on_batch(states[rows]))"
TRAIN = "model.train_on_batch(states[rows], target)"
METRICS = (
    COMPILE_MLP,
    COMPILE_MLP
    + "        metrics=[\n            keras.metrics.SparseCategoricalAccuracy(),\n            keras.metrics.SparseTopKCategoricalAccuracy(k=3),\n            keras.metrics.SparseTopKCategoricalAccuracy(k=5),\n        ],\n",
)

KERAS += (
    Case(
        "keras_mixed_precision",
        "keras_mlp",
        one("mixed_precision"),
        slow=(
            (
                "def build_model(",
                'keras.config.set_dtype_policy("mixed_float16")\n\n\ndef build_model(',
            ),
        ),
    ),
    Case(
        "keras_predict",
        "keras_agent",
        one("predict"),
        slow=((TARGET, "model.predict(states[rows], verbose=0)"),),
    ),
    Case(
        "keras_jax_predict",
        "keras_agent",
        one("predict"),
        backend="jax",
        slow=((TARGET, "np.array(model.predict(states[rows], verbose=0))"),),
    ),
    Case(
        "keras_fits",
        "keras_agent",
        one("fits"),
        slow=((TRAIN, "model.fit(states[rows], target, epochs=1, verbose=0)"),),
    ),
    Case(
        "keras_metrics",
        "keras_mlp",
        one("metrics"),
        base=(
            ("default=512)\n    args", "default=64)\n    args"),
            PLAIN_XLA,
        ),
        slow=(METRICS,),
    ),
    Case(
        "keras_small_batches",
        "keras_mlp",
        one("batch"),
        slow=(("default=512)\n    parser", "default=32)\n    parser"),),
    ),
)

KERAS2 = (
    Case(
        "keras2_eager",
        "keras2_mlp",
        one("eager"),
        slow=((COMPILE_MLP, COMPILE_MLP + "        run_eagerly=True,\n"),),
    ),
    Case(
        "keras2_eager_everywhere",
        "keras2_small",
        one("eager"),
        base=(("    steps_per_execution=50,\n", ""),),
        slow=(
            (
                "import tf_keras as keras\n",
                "import tensorflow as tf\nimport tf_keras as keras\n",
            ),
            (
                "EPOCHS = 2000\n",
                "tf.config.run_functions_eagerly(True)\nEPOCHS = 2000\n",
            ),
        ),
    ),
    Case(
        "keras2_one_step_calls",
        "keras2_small",
        one("one_step_calls"),
        slow=(("    steps_per_execution=50,\n", ""),),
    ),
    Case(
        "keras2_callback",
        "keras2_mlp",
        one("callbacks"),
        slow=(
            ("def main():", CALLBACK + "def main():"),
            ("verbose=2)", "verbose=2,\n        callbacks=[Histograms()],\n    )"),
        ),
    ),
    Case(
        "keras2_validation",
        "keras2_mlp",
        one("validation"),
        base=(
            (
                "verbose=2)",
                "verbose=2,\n        validation_split=0.5,\n        validation_freq=50,\n    )",
            ),
            ("(12800, 128)", "(25600, 128)"),
            ("rng.integers(0, 10, 12800)", "rng.integers(0, 10, 25600)"),
        ),
        slow=(("        validation_freq=50,\n", ""),),
    ),
    Case(
        "keras2_sequence",
        "keras2_mlp",
        one("input"),
        slow=(
            (
                "def main():",
                "class Rows(keras.utils.Sequence):\n    def __init__(self, x, y, batch):\n        self.x, self.y, self.batch = x, y, batch\n\n    def __len__(self):\n        return len(self.x) // self.batch\n\n    def __getitem__(self, i):\n        rows = range(i * self.batch, (i + 1) * self.batch)\n        scaled = [(self.x[r] - self.x[r].mean()) / self.x[r].std() for r in rows]\n        return np.stack(scaled), self.y[rows]\n\n\ndef main():",
            ),
            (
                FIT_KERAS2,
                "model.fit(Rows(x, y, args.batch), epochs=args.epochs, verbose=2)",
            ),
        ),
    ),
    Case(
        "keras2_progress_bar",
        "keras2_small",
        one("progress_bar", "prints"),
        base=(
            ("    steps_per_execution=50,\n", ""),
            ("verbose=2", "verbose=0, callbacks=[line]"),
            (
                "inputs = keras.Input((20,))",
                'line = keras.callbacks.LambdaCallback(\n    on_epoch_end=lambda epoch, logs: print("epoch", epoch, flush=True)\n)\ninputs = keras.Input((20,))',
            ),
        ),
        slow=(("verbose=0", "verbose=1"),),
    ),
    Case(
        "keras2_many_threads",
        "keras2_mlp",
        one("tf_threads"),
        slow=(
            (
                "    tf.random.set_seed(0)\n",
                "    tf.config.threading.set_intra_op_parallelism_threads(16)\n    tf.random.set_seed(0)\n",
            ),
        ),
    ),
    Case(
        "keras2_no_xla",
        "keras2_small",
        one("no_xla"),
        base=(
            (
                "outputs = layers",
                "for _ in range(8):\n"
                '    hidden = layers.Dense(64, activation="gelu")(hidden)\n'
                "    hidden = layers.LayerNormalization()(hidden)\n"
                "outputs = layers",
            ),
            (
                "    steps_per_execution=50,\n",
                "    steps_per_execution=50,\n    jit_compile=True,\n",
            ),
        ),
        slow=(("    jit_compile=True,\n", ""),),
    ),
)

STEP_TF = "            count += 1\n"
LOG_WEIGHTS = (
    "            for v in trainer.net.trainable_variables:\n"
    "                logging.info('step %d: %s is %s', count, v.name, v.numpy())\n"
)

TENSORFLOW = (
    Case(
        "tensorflow_retrace_number",
        "tensorflow_mlp",
        one("retraces"),
        slow=(
            ("tf.constant(0.05 / (1 + 0.001 * count))", "0.05 / (1 + 0.001 * count)"),
        ),
    ),
    Case(
        "tensorflow_retrace_shapes",
        "tensorflow_text",
        one("retraces", "shapes"),
        base=(
            (
                "EPOCHS, BATCH, LONGEST, WIDTH = 1000, 32, 48, 64",
                "EPOCHS, BATCH, LONGEST, WIDTH = 1000, 32, 800, 16",
            ),
        ),
        slow=(
            ("length = LONGEST", "length = int(rng.integers(LONGEST // 2, LONGEST))"),
            (
                "batch[i, : len(row)] = row",
                "cut = row[:length]\n        batch[i, : len(cut)] = cut",
            ),
        ),
    ),
    Case(
        "tensorflow_checks",
        "tensorflow_mlp",
        one("check_numerics"),
        base=(("default=512", "default=256"),),
        slow=(
            (
                "    rng = np.random",
                "    tf.debugging.enable_check_numerics()\n    rng = np.random",
            ),
        ),
    ),
    Case(
        "tensorflow_no_function",
        "tensorflow_mlp",
        one("no_graph"),
        base=(("default=512", "default=128"),),
        slow=(("    @tf.function\n", ""),),
    ),
    Case(
        "tensorflow_no_function_keras",
        "tensorflow_images",
        one("no_graph"),
        slow=(("    @tf.function\n", ""),),
    ),
    Case(
        "tensorflow_eager",
        "tensorflow_text",
        one("eager"),
        slow=(
            ("EPOCHS, BATCH", "tf.config.run_functions_eagerly(True)\nEPOCHS, BATCH"),
        ),
    ),
    Case(
        "tensorflow_input",
        "tensorflow_images",
        one("input", "prefetch"),
        slow=(
            (
                "data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).cache()",
                "data.map(prepare)",
            ),
            ("    return data.prefetch(tf.data.AUTOTUNE)\n", "    return data\n"),
        ),
    ),
    Case(
        "tensorflow_python_map",
        "tensorflow_images",
        one("input", "prefetch"),
        slow=(
            (
                "data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).cache()",
                "data.map(prepare_slowly)",
            ),
            (
                "def pipeline(",
                "def standardized(image):\n    image = np.kron(image[::2, ::2, 0].astype(np.float32), np.ones((1, 1)))\n    image = (image - image.mean()) / max(image.std(), 1e-3)\n    return image[..., None].astype(np.float32)\n\n\ndef prepare_slowly(image, label):\n    image = tf.numpy_function(standardized, [image], tf.float32)\n    image.set_shape((32, 32, 1))\n    return image, label\n\n\ndef pipeline(",
            ),
        ),
    ),
    Case(
        "tensorflow_one_thread",
        "tensorflow_mlp",
        one("tf_threads"),
        base=(
            ("default=512", "default=1024"),
            ("default=128", "default=256"),
        ),
        slow=(
            (
                "    rng = np.random",
                "    tf.config.threading.set_intra_op_parallelism_threads(1)\n    rng = np.random",
            ),
        ),
    ),
    Case(
        "tensorflow_log",
        "tensorflow_mlp",
        one("log"),
        base=(("default=512", "default=128"),),
        slow=(
            importing("logging"),
            (
                "    count = 0\n",
                "    count = 0\n    logging.basicConfig(filename='train.log', level=logging.INFO)\n",
            ),
            (STEP_TF, STEP_TF + LOG_WEIGHTS),
        ),
    ),
    Case(
        "tensorflow_checkpoints",
        "tensorflow_mlp",
        one("save"),
        slow=(
            (
                "    count = 0\n",
                '    count = 0\n    checkpoint = tf.train.Checkpoint(net=trainer.net)\n    manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)\n',
            ),
            (STEP_TF, STEP_TF + "            manager.save()\n"),
        ),
    ),
    Case(
        "tensorflow_sleep",
        "tensorflow_text",
        one("sleep"),
        slow=(
            importing("time"),
            (
                "ratings[chosen])\n",
                "ratings[chosen])\n        time.sleep(0.005)  # for the scheduler\n",
            ),
        ),
    ),
    Case(
        "tensorflow_prints",
        "tensorflow_text",
        one("prints"),
        slow=(
            (
                "ratings[chosen])\n",
                'ratings[chosen])\n        print("step", i, loss, mix, out, flush=True)\n',
            ),
        ),
    ),
    Case(
        "tensorflow_no_xla",
        "tensorflow_text",
        one("function_without_xla"),
        base=(
            ("@tf.function\n", "@tf.function(jit_compile=True)\n"),
            (
                "tf.nn.tanh(tf.gather(embedding, tokens) @ mix)",
                "activation(tf.gather(embedding, tokens) @ mix)",
            ),
            (
                "@tf.function",
                "def activation(x):\n    gate = 0.5 * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))\n    centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)\n    return gate * centered / (1 + tf.abs(centered))\n\n\n@tf.function",
            ),
        ),
        slow=(("(jit_compile=True)", ""),),
    ),
    Case(
        "tensorflow_float64",
        "tensorflow_mlp",
        one("float64"),
        slow=(
            (
                "tf.random.normal((inputs, outputs))",
                "tf.random.normal((inputs, outputs), dtype=tf.float64)",
            ),
            ("tf.zeros(outputs)", "tf.zeros(outputs, tf.float64)"),
            (
                "standard_normal((6400, 64)), tf.float32)",
                "standard_normal((6400, 64)))",
            ),
            (
                "tf.constant(0.05 / (1 + 0.001 * count))",
                "tf.constant(0.05 / (1 + 0.001 * count), tf.float64)",
            ),
        ),
    ),
)

STEP_JAX = "x[rows], y[rows])\n"
JAX_MAIN = "    rng = np.random.default_rng(0)\n    x = "

JAX = (
    Case("jax_no_jit", "jax_mlp", one("no_jit"), slow=(("    @jax.jit\n", ""),)),
    Case("jax_no_jit_cnn", "jax_cnn", one("no_jit"), slow=(("@jax.jit\n", ""),)),
    Case(
        "jax_disable_jit",
        "jax_mlp",
        one("jit_off"),
        slow=(
            (JAX_MAIN, '    jax.config.update("jax_disable_jit", True)\n' + JAX_MAIN),
        ),
    ),
    Case(
        "jax_float64",
        "jax_mlp",
        one("float64"),
        base=(
            ('"--width", type=int, default=256', '"--width", type=int, default=512'),
        ),
        slow=(
            (JAX_MAIN, '    jax.config.update("jax_enable_x64", True)\n' + JAX_MAIN),
            (
                "standard_normal((12800, 64)).astype(np.float32)",
                "standard_normal((12800, 64))",
            ),
        ),
    ),
    Case(
        "jax_blocks",
        "jax_rnn",
        one("blocks"),
        base=(
            (
                "EPOCHS, BATCH, LENGTH, WIDTH = 1000, 32, 24, 64",
                "EPOCHS, BATCH, LENGTH, WIDTH = 1000, 64, 64, 64",
            ),
        ),
        slow=(
            (
                "            params, opt_state, loss = train_step(params, opt_state, x, y)\n",
                "            params, opt_state, loss = train_step(params, opt_state, x, y)\n            jax.block_until_ready(params)\n",
            ),
        ),
    ),
    Case(
        "jax_shapes",
        "jax_rnn",
        one("shapes"),
        base=(
            (
                "        x = rng.standard_normal((BATCH, LENGTH, 8), dtype=np.float32)\n",
                "        length = LENGTH\n        x = rng.standard_normal((BATCH, length, 8), dtype=np.float32)\n",
            ),
            ("1000, 32, 24, 64", "1000, 32, 400, 32"),
            ("range(100)", "range(10)"),
        ),
        slow=(
            (
                "        length = LENGTH\n",
                "        length = int(rng.integers(LENGTH // 2, LENGTH))\n",
            ),
        ),
    ),
    Case(
        "jax_sleep",
        "jax_cnn",
        one("sleep"),
        slow=(
            importing("time"),
            (
                "            params, loss = update(params, *batch)\n",
                "            params, loss = update(params, *batch)\n            time.sleep(0.005)\n",
            ),
        ),
    ),
    Case(
        "jax_save",
        "jax_mlp",
        one("save"),
        slow=(
            (
                STEP_JAX,
                STEP_JAX
                + '            flat = {f"{k}{n}": p[k] for n, p in enumerate(params) for k in p}\n            np.savez("last.npz", **flat)\n',
            ),
        ),
    ),
    Case(
        "jax_collect",
        "jax_rnn",
        one("collections"),
        slow=(
            importing("gc"),
            (
                "(params, opt_state, x, y)\n        print",
                "(params, opt_state, x, y)\n            gc.collect()\n        print",
            ),
        ),
    ),
    Case(
        "jax_prints",
        "jax_mlp",
        one("prints"),
        slow=(
            (
                STEP_JAX,
                STEP_JAX
                + '            print(epoch, i, loss, params[-1]["w"][:4], flush=True)\n',
            ),
        ),
    ),
    Case(
        "jax_one_thread",
        "jax_mlp",
        one("jax_threads"),
        base=(
            ('"--width", type=int, default=256', '"--width", type=int, default=1024'),
        ),
        slow=(
            (
                IMPORT,
                IMPORT
                + '\nimport os\n\nos.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"\n',
            ),
        ),
    ),
)

EPOCH_MLP = "    for epoch in range(args.epochs):\n        total = 0.0\n"

TWO = (
    Case(
        "two_torch_collect_sleep",
        "torch_mlp",
        (("collections",), ("sleep",)),
        slow=(
            importing("gc", "time"),
            (
                MLP_STEP,
                MLP_STEP
                + "            gc.collect(1)\n            gc.collect()\n            time.sleep(0.1)\n",
            ),
        ),
    ),
    Case(
        "two_torch_anomaly_prints",
        "torch_lstm",
        (("anomaly",), ("prints",)),
        slow=(
            (
                "    torch.manual_seed(0)\n",
                "    torch.manual_seed(0)\n    torch.autograd.set_detect_anomaly(True)\n",
            ),
            (
                "            running += loss.item()\n",
                '            running += loss.item()\n            print("step", epoch, loss, model.head.bias, model.head.weight)\n',
            ),
        ),
    ),
    Case(
        "two_torch_rows_thread",
        "torch_loader",
        (("per_item",), ("threads",)),
        base=(("width=512", "width=1024"),),
        slow=(
            (
                "data = Pictures()\n",
                "pictures = Pictures()\n    data = TensorDataset(pictures.x, pictures.y)\n",
            ),
            (
                "data, batch_size=args.batch, shuffle=True, collate_fn=as_they_are",
                "data, batch_size=args.batch, shuffle=True",
            ),
            ("import DataLoader, Dataset", "import DataLoader, Dataset, TensorDataset"),
            (
                "    torch.manual_seed(0)\n",
                "    torch.manual_seed(0)\n    torch.set_num_threads(1)\n",
            ),
        ),
    ),
    Case(
        "two_torch_save_optimizer",
        "torch_transformer",
        (("save",), ("optimizer_ops",)),
        slow=(
            (", fused=True", ", foreach=False"),
            (
                "            step += 1\n",
                '            step += 1\n            torch.save(model.state_dict(), f"model{step % 2}.pt")\n',
            ),
        ),
    ),
    Case(
        "two_keras_validation_callback",
        "keras_mlp",
        (("validation",), ("callbacks",)),
        base=(
            PLAIN_XLA,
            (
                "verbose=2)",
                "verbose=2,\n        validation_data=(x_val, y_val),\n        validation_freq=50,\n    )",
            ),
            (
                "    model = build_model(",
                "    x_val, y_val = table(51200, 128, 10)\n    model = build_model(",
            ),
        ),
        slow=(
            ("        validation_freq=50,\n", "        callbacks=[Histograms()],\n"),
            ("def build_model", CALLBACK + "def build_model"),
        ),
    ),
    Case(
        "two_keras_eager_sleep",
        "keras_cnn",
        (("eager",), ("sleep", "callbacks")),
        slow=(
            (
                "    jit_compile=False,\n",
                "    jit_compile=False,\n    run_eagerly=True,\n",
            ),
            ("import os\n", "import os\nimport time\n"),
            (
                "model.fit(images, labels, batch_size=BATCH, epochs=EPOCHS, verbose=2)",
                "pause = keras.callbacks.LambdaCallback(\n    on_train_batch_end=lambda batch, logs: time.sleep(0.03)\n)\nmodel.fit(\n    images,\n    labels,\n    batch_size=BATCH,\n    epochs=EPOCHS,\n    verbose=2,\n    callbacks=[pause],\n)",
            ),
        ),
    ),
    Case(
        "two_keras2_calls_callback",
        "keras2_small",
        (("one_step_calls",), ("callbacks",)),
        slow=(
            ("    steps_per_execution=50,\n", ""),
            ("inputs = keras.Input((20,))", CALLBACK + "inputs = keras.Input((20,))"),
            ("verbose=2)", "verbose=2, callbacks=[Histograms()])"),
        ),
    ),
    Case(
        "two_tensorflow_checks_log",
        "tensorflow_mlp",
        (("check_numerics",), ("log",)),
        base=(("default=512", "default=128"),),
        slow=(
            importing("logging"),
            (
                "    count = 0\n",
                "    count = 0\n    logging.basicConfig(filename='train.log', level=logging.INFO)\n    tf.debugging.enable_check_numerics()\n",
            ),
            (STEP_TF, STEP_TF + LOG_WEIGHTS),
        ),
    ),
    Case(
        "two_tensorflow_function_input",
        "tensorflow_images",
        (("no_graph",), ("input", "prefetch")),
        slow=(
            ("    @tf.function\n", ""),
            (
                "data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).cache()",
                "data.map(prepare)",
            ),
            ("    return data.prefetch(tf.data.AUTOTUNE)\n", "    return data\n"),
        ),
    ),
    Case(
        "two_jax_float64_prints",
        "jax_mlp",
        (("float64",), ("prints",)),
        slow=(
            (
                JAX_MAIN,
                '    jax.config.update("jax_enable_x64", True)\n' + JAX_MAIN,
            ),
            (
                "standard_normal((12800, 64)).astype(np.float32)",
                "standard_normal((12800, 64))",
            ),
            (
                STEP_JAX,
                STEP_JAX
                + '            print(epoch, i, loss, params[-1]["w"][:4], flush=True)\n',
            ),
        ),
    ),
    Case(
        "two_jax_collect_save",
        "jax_cnn",
        (("collections",), ("save",)),
        slow=(
            importing("gc"),
            (
                "            params, loss = update(params, *batch)\n",
                '            params, loss = update(params, *batch)\n            gc.collect()\n            for _ in range(2):\n                np.savez(f"weights{start % 4}.npz", **params)\n',
            ),
        ),
    ),
)


def same(
    name: str, script: str, *edits: Edit, backend: str = "", base: tuple[Edit, ...] = ()
) -> Case:
    return Case(name, script, (), slow=edits, backend=backend, base=base)


NO_SPE = (("    steps_per_execution=50,\n", ""),)

EQUAL = (
    same(
        "equal_torch_sequential",
        "torch_mlp",
        (
            "    model = Net(128, args.width, 10)\n",
            "    model = nn.Sequential(\n        nn.Linear(128, args.width),\n        nn.ReLU(),\n        nn.Linear(args.width, args.width),\n        nn.ReLU(),\n        nn.Linear(args.width, 10),\n    )\n",
        ),
    ),
    same(
        "equal_torch_modules",
        "torch_mlp",
        (
            "        x = F.relu(self.fc1(x))\n        x = F.relu(self.fc2(x))\n        return self.fc3(x)\n",
            "        h = torch.relu(self.fc1(x))\n        return self.fc3(torch.relu(self.fc2(h)))\n",
        ),
        ("F.cross_entropy(model(xb), yb)", "criterion(model(xb), yb)"),
        (EPOCH_MLP, "    criterion = nn.CrossEntropyLoss()\n" + EPOCH_MLP),
    ),
    same(
        "equal_torch_split",
        "torch_mlp",
        (
            "        for begin in range(0, len(x), args.batch):\n            index = order[begin : begin + args.batch]\n            xb, yb = x[index], y[index]\n",
            "        for index in order.split(args.batch):\n            xb, yb = x[index], y[index]\n",
        ),
    ),
    same(
        "equal_torch_function",
        "torch_lstm",
        (
            "            optimizer.zero_grad()\n            scores = model(tokens)\n            loss = criterion(scores.reshape(-1, VOCABULARY), targets.reshape(-1))\n            loss.backward()\n            optimizer.step()\n            running += loss.item()\n",
            "            running += step(model, optimizer, criterion, tokens, targets)\n",
        ),
        (
            "def main():",
            "def step(model, optimizer, criterion, tokens, targets):\n    optimizer.zero_grad(set_to_none=True)\n    scores = model(tokens).flatten(0, 1)\n    loss = criterion(scores, targets.flatten())\n    loss.backward()\n    optimizer.step()\n    return loss.item()\n\n\ndef main():",
        ),
    ),
    same(
        "equal_torch_state",
        "torch_lstm",
        (
            "        states, _ = self.lstm(self.embedding(tokens))\n",
            "        hidden = torch.zeros(1, len(tokens), self.lstm.hidden_size)\n        start = (hidden, torch.zeros_like(hidden))\n        states, _ = self.lstm(self.embedding(tokens), start)\n",
        ),
    ),
    same(
        "equal_torch_class",
        "torch_cnn",
        (
            "def build():\n    return nn.Sequential(\n        block(3, 32),\n        block(32, 64),\n        block(64, 64),\n        nn.Flatten(),\n        nn.Linear(64 * 4 * 4, 10),\n    )\n",
            "class Cnn(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.one, self.two, self.three = block(3, 32), block(32, 64), block(64, 64)\n        self.head = nn.Linear(64 * 4 * 4, 10)\n\n    def forward(self, x):\n        return self.head(self.three(self.two(self.one(x))).flatten(1))\n",
        ),
        ("model = build()", "model = Cnn()"),
    ),
    same(
        "equal_torch_mean_loss",
        "torch_cnn",
        (
            "        losses.append(loss.item())\n",
            "        losses.append(float(loss.detach()))\n",
        ),
        (
            "        optimizer.zero_grad()\n        loss.backward()\n",
            "        model.zero_grad()\n        loss.backward()\n",
        ),
    ),
    same(
        "equal_torch_collate",
        "torch_loader",
        (
            "def as_they_are(batch):\n    return batch\n",
            "def as_they_are(pair):\n    images, labels = pair\n    return images, labels\n",
        ),
        (
            "        for images, labels in loader:\n",
            "        for _, (images, labels) in enumerate(loader):\n",
        ),
    ),
    same(
        "equal_torch_graph_out",
        "torch_graph",
        (
            "torch.zeros_like(h).index_add_(0, target, messages)",
            "h.new_zeros(h.shape).index_add(0, target, messages)",
        ),
    ),
    same(
        "equal_torch_residual",
        "torch_transformer",
        (
            "        return x + self.down(F.gelu(self.up(self.norm2(x))))\n",
            "        hidden = F.gelu(self.up(self.norm2(x)))\n        return self.down(hidden) + x\n",
        ),
    ),
    same(
        "equal_keras_functional",
        "keras_mlp",
        (
            '    return keras.Sequential(\n        [\n            layers.Input((features,)),\n            layers.Dense(width, activation="relu"),\n            layers.Dense(width, activation="relu"),\n            layers.Dense(classes),\n        ]\n    )\n',
            '    inputs = keras.Input((features,))\n    h = layers.Dense(width, activation="relu")(inputs)\n    h = layers.Dense(width, activation="relu")(h)\n    return keras.Model(inputs, layers.Dense(classes)(h))\n',
        ),
    ),
    same(
        "equal_keras_jax_subclass",
        "keras_mlp",
        (
            '    return keras.Sequential(\n        [\n            layers.Input((features,)),\n            layers.Dense(width, activation="relu"),\n            layers.Dense(width, activation="relu"),\n            layers.Dense(classes),\n        ]\n    )\n',
            "    return Mlp(width, classes)\n",
        ),
        (
            "def build_model",
            'class Mlp(keras.Model):\n    def __init__(self, width, classes):\n        super().__init__()\n        self.a = layers.Dense(width, activation="relu")\n        self.b = layers.Dense(width, activation="relu")\n        self.c = layers.Dense(classes)\n\n    def call(self, x):\n        return self.c(self.b(self.a(x)))\n\n\ndef build_model',
        ),
        backend="jax",
    ),
    same(
        "equal_keras_torch_strings",
        "keras_mlp",
        ("optimizer=keras.optimizers.Adam(1e-3)", 'optimizer="adam"'),
        backend="torch",
    ),
    same(
        "equal_keras_losses",
        "keras_cnn",
        (
            'loss="sparse_categorical_crossentropy"',
            "loss=keras.losses.SparseCategoricalCrossentropy()",
        ),
        (
            'h = layers.Conv2D(16, 3, activation="relu", padding="same")(inputs)\n',
            'h = layers.Conv2D(16, 3, padding="same")(inputs)\nh = layers.Activation("relu")(h)\n',
        ),
    ),
    same(
        "equal_keras2_subclass",
        "keras2_small",
        (
            'inputs = keras.Input((20,))\nhidden = layers.Dense(64, activation="relu")(inputs)\noutputs = layers.Dense(1, activation="sigmoid")(hidden)\nmodel = keras.Model(inputs, outputs)\n',
            'model = keras.Sequential(\n    [layers.Dense(64, activation="relu"), layers.Dense(1, activation="sigmoid")]\n)\n',
        ),
    ),
    same(
        "equal_keras2_data",
        "keras2_mlp",
        (
            '            keras.layers.Dense(512, activation="relu"),\n',
            "            keras.layers.Dense(512),\n            keras.layers.ReLU(),\n",
        ),
    ),
    same(
        "equal_tensorflow_functions",
        "tensorflow_mlp",
        (
            "        return x @ self.w + self.b\n",
            "        return tf.nn.bias_add(tf.matmul(x, self.w), self.b)\n",
        ),
    ),
    same(
        "equal_tensorflow_batches",
        "tensorflow_images",
        (
            "        for x, y in data:\n            loss = train_step(x, y)\n",
            "        for batch in data:\n            loss = train_step(*batch)\n",
        ),
    ),
    same(
        "equal_jax_arguments",
        "jax_mlp",
        (
            "    @jax.jit\n    def step(params, state, x, y):\n",
            "    def step(params, state, x, y):\n",
        ),
        ("    for epoch in", "    step = jax.jit(step)\n    for epoch in"),
    ),
    same(
        "equal_jax_tuples",
        "jax_cnn",
        (
            '    return {\n        "conv1": normal(3, 3, 1, 8),\n        "conv2": normal(3, 3, 8, 16),\n        "dense": normal(7 * 7 * 16, 10),\n    }\n',
            "    return normal(3, 3, 1, 8), normal(3, 3, 8, 16), normal(7 * 7 * 16, 10)\n",
        ),
        ('params["conv1"]', "params[0]"),
        ('params["conv2"]', "params[1]"),
        ('params["dense"]', "params[2]"),
    ),
    same(
        "equal_jax_donated",
        "jax_rnn",
        (
            "    loss, grads = jax.value_and_grad(mse)(params, sequences, targets)\n",
            "    value_and_grad = jax.value_and_grad(lambda p: mse(p, sequences, targets))\n    loss, grads = value_and_grad(params)\n",
        ),
    ),
)

# Each is raced against itself.
IDENTICAL = tuple(
    same(f"identical_{path.stem}", path.stem) for path in sorted(SCRIPTS.glob("*.py"))
) + tuple(
    same(f"identical_{script}_{backend}", script, backend=backend)
    for script in ("keras_mlp", "keras_cnn", "keras_small", "keras_text")
    for backend in ("torch", "jax")
    if (script, backend) != ("keras_small", "torch")  # several steps a call: not there
)

PLANTED = TORCH + KERAS + KERAS2 + TENSORFLOW + JAX + TWO
