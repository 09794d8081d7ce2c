"""The published networks in `small` pass the gate of every framework that trains.

Everyday it is a deep one, one with an LSTM and an imported one, each in one framework;
all of them in all frameworks are of the full tier.

python3 -m tests.cli.small_networks_test build/dev/bakeoff
"""

from __future__ import annotations

import re
import shutil
import unittest

from tests.cli import support

# Environment, contender.
FRAMEWORKS = {
    "torch": ("torch", 'framework = "torch"'),
    "libtorch": ("torch", 'framework = "libtorch"'),
    "tensorflow": ("tensorflow", 'framework = "tensorflow"'),
    "jax": ("jax", 'framework = "jax"'),
    "keras": ("tensorflow", 'framework = "keras", backend = "tensorflow"'),
    "keras-torch": ("torch", 'framework = "keras", backend = "torch"'),
    "keras-jax": ("jax", 'framework = "keras", backend = "jax"'),
    "keras2": ("keras2", 'framework = "keras2"'),
}
NETWORKS = (
    "alexnet_small",
    "resnet18_small",
    "resnet50_small",
    "bert_small",
    "lstm_lm_small",
    "lstm_lm_tied_small",
)
# Imported ones, which have no libtorch in their recipes: compiling takes minutes.
IMPORTED = (
    "transformer_tiny",
    "gnmt_tiny",
    "deep_speech_2_tiny",
    "sam_encoder_tiny",
    "sam_tiny",
    "unet_tiny",
    "gemma_tiny",
    "mistral_tiny",
    "mistral_lora_tiny",
    "vae_tiny",
    "clip_text_tiny",
    "bert_tiny",
    "tacotron_2_tiny",
    "vit_tiny",
    "fastmri_tiny",
    "dlrm_tiny",
    "conformer_tiny",
    "graph_network_tiny",
    "inception_v3_tiny",
)
# Environments that are made by their names only, recipes/library, and the networks.
LIBRARIES = {
    "torch_libraries": {
        "bert": "bert_tiny", "sam": "sam_encoder_tiny", "gemma": "gemma_tiny",
        "mistral": "mistral_tiny", "mistral_lora": "mistral_lora_tiny", "unet": "unet_tiny",
    },
    "keras_libraries": {
        "hub_bert": "bert_tiny", "hub_sam": "sam_encoder_tiny", "hub_gemma": "gemma_tiny",
        "hub_mistral": "mistral_tiny",
    },
    "torch_vision": {"vit": "vit_tiny"},
}  # fmt: skip
EVERYDAY = {
    "resnet18_small": "torch",
    "lstm_lm_small": "jax",
    "dlrm_tiny": "torch",
}


def recipe(network: str, contenders: list[str]) -> str:
    """The recipe that ships, with these contenders."""
    text = (support.ROOT / "recipes" / f"{network}.toml").read_text()
    rows = "".join(f"  {{ {contender} }},\n" for contender in contenders)
    text, found = re.subn(
        r"^contenders = \[$.*?^\]$",
        f"contenders = [\n{rows}]",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    assert found == 1, network
    return text


class SmallNetworks(unittest.TestCase):
    def prove(self, network: str, frameworks: list[str]) -> None:
        environments = {FRAMEWORKS[name][0] for name in frameworks}
        support.need(*environments)
        place = support.Place(sorted(environments), warm=True, shared_programs=True)
        self.addCleanup(place.close)
        text = recipe(network, [FRAMEWORKS[name][1] for name in frameworks])
        self.prove_at(place, network, text)

    def prove_at(self, place: support.Place, network: str, text: str) -> None:
        place.write(f"{network}.toml", text)
        named = re.search(r'^workload = "(.*\.ir)"$', text, flags=re.MULTILINE)
        if named:
            shutil.copy(support.ROOT / "recipes" / named[1], place.path)
        outcome = place.run("parity", f"{network}.toml")
        self.assertEqual(outcome.code, 0, f"{network}:\n{outcome.out}\n{outcome.err}")

    def test_some_in_one_framework(self) -> None:
        for network, framework in EVERYDAY.items():
            with self.subTest(network=network, framework=framework):
                self.prove(network, [framework])

    @support.full_tier
    def test_imported_ones_in_four_frameworks(self) -> None:
        for network in IMPORTED:
            with self.subTest(network=network):
                self.prove(network, ["torch", "jax", "tensorflow", "keras"])

    @support.full_tier
    def test_models_of_libraries(self) -> None:
        for environment, scripts in LIBRARIES.items():
            if not support.interpreter(environment).exists():
                continue  # no test makes it
            backends = ', backend = ["tensorflow", "jax", "torch"]'
            for script, network in scripts.items():
                file = support.ROOT / "recipes" / "library" / f"{script}.py"
                row = f'script = "{file}", environment = "{environment}"'
                row += backends if environment == "keras_libraries" else ""
                eps = "1e-7" if script == "vit" else "1e-8"
                text = recipe(network, [row]).replace(
                    "[optimizer]", f"[optimizer]\neps = {eps}"
                )
                place = support.Place([environment])
                self.addCleanup(place.close)
                with self.subTest(script=script):
                    self.prove_at(place, network, text)

    @support.full_tier
    def test_each_in_every_framework(self) -> None:
        for network in NETWORKS:
            with self.subTest(network=network):
                self.prove(network, list(FRAMEWORKS))


if __name__ == "__main__":
    support.main()
