"""Architectures of torchvision, timm and Keras, imported and proven, or refused by op name.

    pip install --target PACKAGES --no-deps torchvision timm huggingface_hub pyyaml pillow tqdm
    python3 -m tests.import_conformance build/dev/bakeoff PACKAGES [NAME ...]
    python3 -m tests.import_conformance build/dev/bakeoff keras
    python3 -m tests.import_conformance build/dev/bakeoff module_db

module_db: the modules of torch's own tests, as they are built there, in the environment
torch. With --train each import also goes through the gate in PyTorch, JAX, TensorFlow and
Keras: losses, gradients, and the first training steps in float64 and float32.

torchvision and timm are no part of the environments, so they are no test of the tiers;
those of Keras are (tests/cli/import_keras_test.py). Prints one
line for each architecture, and the section of docs/import.md at the end. A name may state
the size of its pictures: timm.dla34@64. Small pictures prove as much, in less time.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cli import support

TORCHVISION = """alexnet@96 convnext_tiny@64 densenet121@64 efficientnet_b0@64
efficientnet_v2_s@64 googlenet@64 inception_v3@96 maxvit_t mnasnet1_0@64 mobilenet_v2@64
mobilenet_v3_small@64 regnet_x_400mf@64 regnet_y_400mf@64 resnet18@64 resnet50
resnext50_32x4d@64 shufflenet_v2_x1_0@64 squeezenet1_0@64 swin_t swin_v2_t@256
vgg11_bn@64 vit_b_32 wide_resnet50_2@64"""
TIMM = """resnet26d@64 resnetv2_50@64 seresnet50@64 cspresnet50@64 dla34@64 dpn68@64
densenet121@64 dm_nfnet_f0@64 nf_resnet50@64 efficientnet_lite0@64 tf_efficientnet_b0@64
mobilenetv3_small_100@64 mobilenetv4_conv_small@64 mobileone_s0@64 mobilevit_xxs@64
mobilevitv2_050@64 ghostnet_100@64 ghostnetv2_100@64 fbnetc_100@64 lcnet_050@64
rexnet_100@64 regnety_002@64 regnetz_b16@64 repvgg_a0@64 res2net50_14w_8s@64
resnest14d@64 selecsls42b@64 skresnet18@64 hrnet_w18_small@64 xception41@96
inception_v4@128 inception_resnet_v2@128 ese_vovnet19b_dw@64 gernet_s@64 convnext_atto@64
convnextv2_atto@64 convmixer_768_32@64 edgenext_xx_small@64 efficientformer_l1
efficientformerv2_s0 efficientvit_b0@64 efficientvit_m0 fastvit_t8@64 focalnet_tiny_srf
gcvit_xxtiny hgnetv2_b0@64 inception_next_tiny@64 levit_128s maxvit_tiny_rw_224
coatnet_nano_rw_224 coat_lite_tiny crossvit_tiny_240@240 davit_tiny
deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224 convit_tiny mixer_s32_224
gmlp_s16_224 resmlp_12_224 mvitv2_tiny nest_tiny nextvit_small@64 pit_ti_224
poolformer_s12@64 pvt_v2_b0 repvit_m0_9@96 rdnet_tiny@64 sequencer2d_s starnet_s1@64
swin_tiny_patch4_window7_224 swinv2_tiny_window8_256@256 tiny_vit_5m_224
tnt_s_patch16_224 tresnet_m@64 twins_svt_small vit_tiny_patch16_224 volo_d1_224
xcit_nano_12_p16_224 eva02_tiny_patch14_224 visformer_tiny botnet26t_256@256
halonet26t@256 lambda_resnet26t@256 eca_resnet33ts@64 gcresnet33ts@64 cs3darknet_s@64
hiera_tiny_224 mambaout_femto@64 swiftformer_xs@64"""
# Of keras.applications. Keras itself has NASNet on JAX and TensorFlow alone.
KERAS = """MobileNet@64 MobileNetV2@64 MobileNetV3Small@64 EfficientNetB0@64 ResNet50@64
ResNet50V2@64 DenseNet121@64 VGG16@32 InceptionV3@96 Xception@96 NASNetMobile@64
ConvNeXtTiny@64"""
ON_JAX = ("keras.NASNetMobile",)
KERAS_MODELS = """
import keras

def __getattr__(name):
    kind, _, size = name.partition("__")
    if not size:
        raise AttributeError(name)
    shape = (int(size), int(size), 3)
    made = getattr(keras.applications, kind)
    return lambda: made(weights=None, input_shape=shape, classes=10)
"""
# The user's file: any architecture by its name. torchvision's own kernels are left out:
# they may be built for another torch.
MODELS = """
import sys, types
sys.path.append({packages!r})
sys.modules["torchvision._meta_registrations"] = types.ModuleType("none")

def __getattr__(name):
    package, _, model = name.partition("__")
    if package == "torchvision":
        import torchvision.models
        plain = dict(aux_logits=False, init_weights=False)
        more = plain if model in ("googlenet", "inception_v3") else {{}}
        return lambda: torchvision.models.get_model(model, weights=None, **more)
    if package == "timm":
        import timm
        return lambda: timm.create_model(model, pretrained=False)
    raise AttributeError(name)
"""
FIGURES = re.compile(r"outputs differ by (\S+) .*gradients of \d+ parameters by (\S+)")


@dataclass(frozen=True)
class Outcome:
    model: str
    code: int
    seconds: float
    said: str
    gate: Mapping[str, str] | None = None  # by framework: "same", or what failed

    @property
    def trains(self) -> bool:
        return self.gate is not None and all(v == "same" for v in self.gate.values())

    @property
    def kind(self) -> str:
        if self.code == 0:
            return "proven"
        ours = re.search("defect of bakeoff|Traceback|differ by", self.said)
        return "refused" if self.code == 2 and not ours else "WRONG"

    def line(self) -> str:
        what = self.said
        if found := FIGURES.search(self.said):
            what = f"outputs {found[1]}, gradients {found[2]}"
        for framework, verdict in (self.gate or {}).items():
            what += f"; {framework} {verdict}"
        return f"{self.kind:8} {self.model:44} {self.seconds:5.1f} s  {what}"


def write_models(folder: Path, packages: Path) -> None:
    text = MODELS.format(packages=str(packages.resolve()))
    (folder / "models.py").write_text(text, encoding="utf-8")
    (folder / "keras_models.py").write_text(KERAS_MODELS, encoding="utf-8")
    on_jax = "import jax\n" + KERAS_MODELS
    (folder / "keras_models_jax.py").write_text(on_jax, encoding="utf-8")


MODULE_DB = Path(__file__).with_name("module_db_models.py")
TRIED = 3  # at most, of the tests that torch has of one module


def module_db() -> dict[str, list[str]]:
    """torch's own modules: names that request() takes, in the order to try them."""
    done = subprocess.run(
        [str(support.interpreter("torch")), str(MODULE_DB)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {
        f"module_db.{kind}": [
            f"module_db.{kind}__{number}@{';'.join(types)}"
            for number, types in rows[:TRIED]
        ]
        for kind, rows in json.loads(done.stdout).items()
    }


def first_proven(names: Sequence[str], attempt: Callable[[str], Outcome]) -> Outcome:
    """A module counts as proven where one of its tests is; a wrong one counts more."""
    outcomes = []
    for name in names:
        outcomes.append(attempt(name))
        if outcomes[-1].kind != "refused":
            return outcomes[-1]
    return outcomes[0]


def request(model: str, picture: str) -> list[str]:
    """What names the model and its input."""
    package, _, kind = model.partition(".")
    if package == "module_db":
        inputs = [word for one in picture.split(";") for word in ("--input", one)]
        return [f"{MODULE_DB}:{kind}", *inputs]
    if package == "keras":
        file = "keras_models_jax.py" if model in ON_JAX else "keras_models.py"
        return [f"{file}:{kind}__{picture}", "--framework", "keras"]
    made = f"models.py:{model.replace('.', '__')}"
    return [made, "--input", f"f32[4,3,{picture},{picture}]"]


def imported(
    bakeoff: Path, folder: Path, name: str, variables: Mapping[str, str] | None = None
) -> Outcome:
    model, _, size = name.partition("@")
    begin = time.monotonic()
    loss = "mse" if model.startswith("module_db") else "softmax_cross_entropy"
    done = subprocess.run(
        [
            str(bakeoff), "import", *request(model, size or "224"),
            "--loss", loss, "--out", "my.ir", "--force",
        ],
        cwd=folder, capture_output=True, text=True, check=False, env=variables,
    )  # fmt: skip
    lines = [
        t.strip() for t in done.stderr.splitlines() if "is proven against" not in t
    ]
    said = done.stdout if done.returncode == 0 else " | ".join(lines[1:])
    return Outcome(model, done.returncode, time.monotonic() - begin, said)


FRAMEWORKS = ("torch", "jax", "tensorflow", "keras")
_VERDICT = re.compile(r"^([a-z0-9]+)(?:\[[^\]]*\])?: (.*)", re.MULTILINE)


def gate(
    bakeoff: Path, recipe: Path, variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What the gate says of an import in four frameworks."""
    listed = "".join(f'  {{ framework = "{name}" }},\n' for name in FRAMEWORKS)
    text, count = re.subn(
        r"^contenders = \[\n.*?^\]\n",
        f"contenders = [\n{listed}]\n",
        recipe.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    assert count == 1
    recipe.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [str(bakeoff), "parity", recipe.name],
        cwd=recipe.parent, capture_output=True, text=True, check=False, env=variables,
    )  # fmt: skip
    said = dict(_VERDICT.findall(done.stdout))
    return {name: said.get(name, done.stderr.strip()[-300:]) for name in FRAMEWORKS}


def section(outcomes: list[Outcome]) -> str:
    """For docs/import.md: counts, and why the others are refused."""
    text = (
        "| from | tried | proven | refused by name | wrong | the same training steps in "
        "four frameworks |\n|---|---|---|---|---|---|\n"
    )
    for package in ("torchvision", "timm", "keras", "module_db"):
        if not any(o.model.startswith(package) for o in outcomes):
            continue
        own = [o for o in outcomes if o.model.startswith(package)]
        count = Counter(o.kind for o in own)
        text += (
            f"| {package} | {len(own)} | {count['proven']} | {count['refused']} | "
            f"{count['WRONG']} | {sum(o.trains for o in own)} of "
            f"{sum(o.gate is not None for o in own)} tried |\n"
        )
    refused = [o for o in outcomes if o.kind != "proven"]
    if refused:
        text += "\n| not imported | because of |\n|---|---|\n"
    for outcome in refused:
        ops = re.findall(r"needs the op '(\w+)'", outcome.said)
        ops += re.findall(r"aten\.\w+(?=: )|keras\.ops \w+(?=: )", outcome.said)
        why = ", ".join(f"`{op}`" for op in dict.fromkeys(ops)) or outcome.said[:160]
        text += f"| `{outcome.model}` | {why} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bakeoff", type=Path)
    parser.add_argument("packages", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--train", action="store_true")
    given = parser.parse_intermixed_args()
    names = given.names or [
        *(f"torchvision.{name}" for name in TORCHVISION.split()),
        *(f"timm.{name}" for name in TIMM.split()),
    ]
    if str(given.packages) == "keras":
        names = [f"keras.{name}" for name in KERAS.split()]
    tests = module_db() if str(given.packages) == "module_db" else {}
    names = given.names or list(tests) or names
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder), given.packages)
        for name in names:
            outcome = first_proven(
                tests.get(name, [name]),
                lambda one: imported(given.bakeoff.resolve(), Path(folder), one),
            )
            if given.train and outcome.kind == "proven":
                recipe = Path(folder) / "my.toml"
                verdicts = gate(given.bakeoff.resolve(), recipe)
                outcome = replace(outcome, gate=verdicts)
            outcomes.append(outcome)
            print(outcome.line(), file=sys.stderr, flush=True)
    print(section(outcomes), end="")
    sys.exit(any(outcome.kind == "WRONG" for outcome in outcomes))


if __name__ == "__main__":
    main()
