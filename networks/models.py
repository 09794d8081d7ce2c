"""Networks of published studies at a size that trains within a second a step: from the
library that people take them from, or, where no library has them, written here.

`scripts/networks` imports them; recipes/NAME.ir and NAME.toml are what it gives.
"""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import torch
from torch import nn


def exact(net: Any) -> nn.Module:
    """With the frequencies of its rotary tables in float64: transformers rounds them to
    float32 where it makes the model, and KerasHub has others of the same formula."""
    half = net.model.rotary_emb.inv_freq.numel()
    exponents = torch.arange(half, dtype=torch.float64) / half
    net.model.rotary_emb.inv_freq = 10_000**-exponents
    return net  # type: ignore[no-any-return]


def gemma_tiny() -> nn.Module:
    """Gemma of transformers with 2 layers of 64: one head of keys, (1 + w) norms, a tied head."""
    from transformers import GemmaConfig, GemmaForCausalLM

    config = GemmaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=1, head_dim=16,
        max_position_embeddings=64, use_cache=False, pad_token_id=None,
    )  # fmt: skip
    return exact(GemmaForCausalLM(config))


def mistral_tiny() -> nn.Module:
    """Mistral of transformers with 2 layers of 64: grouped keys, a window of 8 words."""
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=256, hidden_size=64, intermediate_size=192, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, sliding_window=8,
        max_position_embeddings=64, use_cache=False,
    )  # fmt: skip
    return exact(MistralForCausalLM(config))


def sam_encoder_tiny() -> nn.Module:
    """The picture encoder of SAM of transformers with 2 layers of 32: windows, relative positions."""
    from transformers import SamVisionConfig, SamVisionModel

    return SamVisionModel(
        SamVisionConfig(
            hidden_size=32, output_channels=16, num_hidden_layers=2,
            num_attention_heads=2, image_size=64, patch_size=8, window_size=4,
            global_attn_indexes=[1], mlp_dim=64,
        )
    )  # fmt: skip


def sam_tiny() -> nn.Module:
    """SAM of transformers: the same encoder, points, and the decoder of masks and scores."""
    from transformers import SamConfig, SamModel

    return SamModel(
        SamConfig(
            vision_config={
                "hidden_size": 32, "output_channels": 16, "num_hidden_layers": 2,
                "num_attention_heads": 2, "image_size": 64, "patch_size": 8,
                "window_size": 4, "global_attn_indexes": [1], "mlp_dim": 64,
                "num_pos_feats": 8,
            },
            prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 8},
            mask_decoder_config={
                "hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 2,
                "iou_head_hidden_dim": 16, "iou_head_depth": 2,
            },
        )
    )  # fmt: skip


def unet_tiny() -> nn.Module:
    """The UNet of Stable Diffusion, of diffusers, with 16 and 32 channels: cross attention, group norms."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=16, layers_per_block=1, block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24,
        attention_head_dim=4, norm_num_groups=8,
    )  # fmt: skip


def bert_tiny() -> nn.Module:
    """BERT of transformers with 2 layers of 64: learned places, a tied masked language head."""
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(
            vocab_size=256, hidden_size=64, intermediate_size=256, num_hidden_layers=2,
            num_attention_heads=4, max_position_embeddings=64, pad_token_id=None,
        )
    )  # fmt: skip


def clip_text_tiny() -> nn.Module:
    """The text encoder of CLIP of transformers with 2 layers of 32: quick GELU, causal."""
    from transformers import CLIPTextConfig, CLIPTextModel

    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=200, hidden_size=32, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, max_position_embeddings=16, eos_token_id=199,
        )
    )  # fmt: skip


def vae_tiny() -> nn.Module:
    """The autoencoder of Stable Diffusion, of diffusers, with 8 and 16 channels: means, no draws."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 16), norm_num_groups=4, sample_size=32,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip


class Inception(nn.Module):
    """Inception v3 of torchvision whose auxiliary head computes in both modes, behind
    the classes. Its parts stand in the order of its forward."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name, part in self.net.named_children():
            if name == "AuxLogits":
                auxiliary = part(x)
            else:
                x = part(x.flatten(1) if name == "fc" else x)
        return torch.cat((x, auxiliary), 1)


def inception_v3_tiny() -> nn.Module:
    """Inception v3 of torchvision with an eighth of the channels: 1x7 and 7x1, an auxiliary head."""
    from torchvision.models import inception

    def narrow(inputs: int, outputs: int, **sizes: object) -> nn.Module:
        return inception.BasicConv2d(max(inputs // 8, 3), outputs // 8, **sizes)

    kinds = [getattr(inception, f"Inception{kind}") for kind in "ABCDE"]
    blocks = [functools.partial(kind, conv_block=narrow) for kind in kinds]
    head = functools.partial(inception.InceptionAux, conv_block=narrow)
    net = inception.Inception3(
        10, inception_blocks=[narrow, *blocks, head], init_weights=False
    )
    net.fc = nn.Linear(256, 10)
    net.AuxLogits.conv1 = narrow(128, 768, kernel_size=1)  # of 1x1, not 5x5, places
    net.AuxLogits.fc = nn.Linear(96, 10)
    return Inception(net)


class Translator(nn.Module):
    """torch.nn.Transformer between two tables, causal in the target."""

    def __init__(self, words: int, width: int, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.scale = width**0.5
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(32, width))
        self.transformer = nn.Transformer(
            width, heads, layers, layers, 4 * width, batch_first=True
        )
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.words.weight

    def _read(self, ids: torch.Tensor) -> torch.Tensor:
        return self.scale * self.words(ids) + self.places[: ids.shape[1]]

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        made = self.transformer(
            self._read(source), self._read(target), tgt_mask=later, tgt_is_causal=True
        )
        return self.out(made)


def transformer_tiny() -> nn.Module:
    """torch.nn.Transformer with 2 and 2 layers of 64, and one table for all words."""
    return Translator(200, 64)


class Gnmt(nn.Module):
    """LSTMs with normed attention between them, as in the reference of MLPerf: the first
    of the encoder in both directions, residuals from the third on, one table."""

    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()

        def lstm(inputs: int, both: bool = False) -> nn.LSTM:
            return nn.LSTM(inputs, width, batch_first=True, bidirectional=both)

        self.words = nn.Embedding(words, width)
        self.both, self.above = lstm(width, True), lstm(2 * width)
        self.more = nn.ModuleList(lstm(width) for _ in range(layers - 2))
        self.first = lstm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.full((), width**-0.5))
        self.direction = nn.Parameter(torch.randn(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.later = nn.ModuleList(lstm(2 * width) for _ in range(layers - 1))
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(width, words)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.above(self.drop(self.both(self.drop(self.words(source)))[0]))[0]
        for layer in self.more:
            memory = memory + layer(self.drop(memory))[0]
        x = self.first(self.drop(self.words(target)))[0]
        sums = self.query(x)[:, :, None] + self.key(memory)[:, None] + self.shift
        direction = self.scale * self.direction / self.direction.norm()
        weights = torch.softmax((torch.tanh(sums) * direction).sum(-1), -1)
        seen = weights @ memory
        for i, layer in enumerate(self.later):
            made = layer(self.drop(torch.cat((x, seen), -1)))[0]
            x = x + made if i > 0 else made
        return self.out(x)


def gnmt_tiny() -> nn.Module:
    """GNMT with three LSTMs of 48 on each side and normed attention between them."""
    return Gnmt(200, 48, 3)


class DeepSpeech2(nn.Module):
    """Convolutions of a spectrogram, recurrences in both directions, CTC."""

    def __init__(self, bands: int, width: int, letters: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 8, (11, 5), (2, 2), (5, 2), bias=False), nn.BatchNorm2d(8),
            nn.Hardtanh(0, 20),
            nn.Conv2d(8, 8, (11, 5), (1, 2), (5, 2), bias=False), nn.BatchNorm2d(8),
            nn.Hardtanh(0, 20),
        )  # fmt: skip
        inputs = 8 * ((bands + 3) // 4)
        self.lstm = nn.LSTM(inputs, width, 2, batch_first=True, bidirectional=True)
        self.norm, self.out = nn.LayerNorm(2 * width), nn.Linear(2 * width, letters)

    def forward(self, spectrogram: torch.Tensor) -> torch.Tensor:
        x = self.convolutions(spectrogram[:, None]).transpose(1, 2).flatten(2)
        return self.out(self.norm(self.lstm(x)[0]))


def deep_speech_2_tiny() -> nn.Module:
    """Deep Speech 2 with two convolutions and two LSTMs of 32 in both directions, and CTC."""
    return DeepSpeech2(20, 32, 29)


def _convolved(inputs: int, outputs: int, after: list[nn.Module]) -> nn.Sequential:
    convolution = nn.Conv1d(inputs, outputs, 5, padding=2)
    return nn.Sequential(convolution, nn.BatchNorm1d(outputs), *after, nn.Dropout(0.5))


class Tacotron2(nn.Module):
    """From letters and the frames before, to frames and whether speech ends: the sizes
    of Shen et al. 2018, LSTMs with dropout where they have zoneout. Gives the frames
    behind the last convolutions, those before them, and the end of each."""

    def __init__(self, letters: int, width: int, bands: int, places: int = 31) -> None:
        super().__init__()
        half, small, states = width // 2, width // 4, 2 * width
        self.letters = nn.Embedding(letters, width)
        self.convolutions = nn.Sequential(
            *(_convolved(width, width, [nn.ReLU()]) for _ in range(3))
        )
        self.encoder = nn.LSTM(width, half, batch_first=True, bidirectional=True)
        self.before = nn.Sequential(
            nn.Linear(bands, half, bias=False), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(half, half, bias=False), nn.ReLU(), nn.Dropout(0.5),
        )  # fmt: skip
        self.looking = nn.LSTMCell(half + width, states)
        self.query = nn.Linear(states, small, bias=False)
        self.key = nn.Linear(width, small, bias=False)
        self.location = nn.Conv1d(2, 32, places, padding=places // 2, bias=False)
        self.place = nn.Linear(32, small, bias=False)
        self.score = nn.Linear(small, 1, bias=False)
        self.speaking = nn.LSTMCell(states + width, states)
        self.drop = nn.Dropout(0.1)
        self.frame = nn.Linear(states + width, bands)
        self.end = nn.Linear(states + width, 1)
        sizes = [bands, *[width] * 4, bands]
        self.after = nn.Sequential(
            *(
                _convolved(sizes[i], sizes[i + 1], [nn.Tanh()] * (i < 4))
                for i in range(5)
            )
        )

    def forward(self, letters: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
        read = self.convolutions(self.letters(letters).transpose(1, 2)).transpose(1, 2)
        memory = self.encoder(read)[0]
        keys, frames = self.key(memory), self.before(frames)
        zeros = memory.new_zeros(memory.shape[0], self.looking.hidden_size)
        looking, speaking = (zeros, zeros), (zeros, zeros)
        seen, weights = torch.zeros_like(memory[:, 0]), torch.zeros_like(memory[..., 0])
        sums, made, ends = weights, [], []
        for t in range(frames.shape[1]):
            state, cell = self.looking(torch.cat((frames[:, t], seen), -1), looking)
            looking = self.drop(state), cell
            known = self.location(torch.stack((weights, sums), 1)).transpose(1, 2)
            query = self.query(looking[0])[:, None]
            scores = self.score(torch.tanh(query + keys + self.place(known)))
            weights = torch.softmax(scores.squeeze(-1), -1)
            sums = sums + weights
            seen = (weights[:, None] @ memory).squeeze(1)
            state, cell = self.speaking(torch.cat((looking[0], seen), -1), speaking)
            speaking = self.drop(state), cell
            both = torch.cat((speaking[0], seen), -1)
            made.append(self.frame(both))
            ends.append(self.end(both))
        frame, end = torch.stack(made, 1), torch.stack(ends, 1)
        after = frame + self.after(frame.transpose(1, 2)).transpose(1, 2)
        return torch.cat((after, frame, end), -1)


def tacotron_2_tiny() -> nn.Module:
    """Tacotron 2 with LSTMs of 32 over 6 frames: attention by content and place, end of speech."""
    return Tacotron2(40, 16, 8, 7)


# The workloads of AlgoPerf that are none of the above.


def vit_tiny() -> nn.Module:
    """The vision transformer of timm with 2 layers of 64 on patches of 8x8."""
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(
        img_size=32, patch_size=8, num_classes=10, embed_dim=64, depth=2, num_heads=4
    )


class Mri(nn.Module):
    """The U-Net of fastMRI: two convolutions a level, each with an instance norm and a
    leaky ReLU, transposed convolutions upwards, and the levels' values beside them."""

    def __init__(self, width: int, levels: int) -> None:
        super().__init__()

        def part(convolution: nn.Module, outputs: int) -> nn.Sequential:
            return nn.Sequential(
                convolution, nn.InstanceNorm2d(outputs), nn.LeakyReLU(0.2)
            )

        def both(inputs: int, outputs: int) -> nn.Sequential:
            first = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
            second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            return nn.Sequential(*part(first, outputs), *part(second, outputs))

        sizes = [width << i for i in range(levels + 1)]
        self.down = nn.ModuleList(both(a, b) for a, b in pairwise([1, *sizes]))
        self.up, self.over = nn.ModuleList(), nn.ModuleList()
        for large, small in pairwise(sizes[::-1]):
            raised = nn.ConvTranspose2d(large, small, 2, 2, bias=False)
            self.up.append(part(raised, small))
            self.over.append(both(large, small))
        self.pool, self.out = nn.AvgPool2d(2), nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for i, level in enumerate(self.down):
            x = level(self.pool(x) if i > 0 else x)
            kept.append(x)
        for i, level in enumerate(self.over):
            kept.pop()
            x = level(torch.cat((self.up[i](x), kept[-1]), 1))
        return self.out(x)


def fastmri_tiny() -> nn.Module:
    """The U-Net of fastMRI with 8, 16 and 32 channels: instance norms, transposed convolutions."""
    return Mri(8, 2)


class Dlrm(nn.Module):
    """Recommendation (Naumov et al. 2019): numbers through layers, words of 26 kinds from
    one table, the products of all pairs of them, and layers above."""

    def __init__(self, words: int, width: int, kinds: int = 26) -> None:
        super().__init__()
        self.below = nn.Sequential(
            nn.Linear(13, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU()
        )
        self.words = nn.Embedding(words, width)
        pairs = torch.tril_indices(kinds + 1, kinds + 1)
        self.register_buffer("rows", pairs[0], persistent=False)
        self.register_buffer("columns", pairs[1], persistent=False)
        self.above = nn.Sequential(
            nn.Linear(width + pairs.shape[1], 4 * width), nn.ReLU(),
            nn.Linear(4 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1),
        )  # fmt: skip

    def forward(self, numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        below = self.below(numbers)
        all = torch.cat((below[:, None], self.words(ids)), 1)
        products = all @ all.transpose(1, 2)
        pairs = products[:, self.rows, self.columns]
        return self.above(torch.cat((below, pairs), 1))


def dlrm_tiny() -> nn.Module:
    """The recommendation network DLRM with a table of 1,000 words of 16: products of all pairs."""
    return Dlrm(1000, 16)


class ConformerLayer(nn.Module):
    """Half a feed-forward layer, attention, a convolution of each channel, the other half."""

    def __init__(self, width: int, heads: int, places: int) -> None:
        super().__init__()

        def forwards() -> nn.Sequential:
            return nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                nn.Dropout(0.1), nn.Linear(4 * width, width), nn.Dropout(0.1),
            )  # fmt: skip

        self.first, self.second = forwards(), forwards()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.gate = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GLU(-1)
        )
        self.along = nn.Sequential(
            nn.Conv1d(width, width, places, padding=places // 2, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(),
        )  # fmt: skip
        self.mix, self.last = nn.Linear(width, width), nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.first(x)
        y = self.norm(x)
        x = x + self.drop(self.attention(y, y, y, need_weights=False)[0])
        y = self.along(self.gate(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.drop(self.mix(y))
        return self.last(x + 0.5 * self.second(x))


class Conformer(nn.Module):
    """Convolutions that keep a quarter of the frames, layers (Gulati et al. 2020), CTC."""

    def __init__(self, bands: int, width: int, layers: int, letters: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(),
        )  # fmt: skip
        self.enter = nn.Linear(width * ((bands + 3) // 4), width)
        self.layers = nn.Sequential(
            *(ConformerLayer(width, 4, 7) for _ in range(layers))
        )
        self.out = nn.Linear(width, letters)

    def forward(self, spectrogram: torch.Tensor) -> torch.Tensor:
        x = self.convolutions(spectrogram[:, None]).transpose(1, 2).flatten(2)
        return self.out(self.layers(self.enter(x)))


def conformer_tiny() -> nn.Module:
    """Conformer with 2 layers of 32: attention, convolutions of each channel, and CTC."""
    return Conformer(20, 32, 2, 29)


class MessageStep(nn.Module):
    """Edges read their ends, nodes the sums of their edges, the graph the sums of both."""

    def __init__(self, width: int, whole: int) -> None:
        super().__init__()

        def layer(inputs: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(),
                nn.Dropout(0.1),
            )  # fmt: skip

        self.edge, self.node = layer(3 * width + whole), layer(3 * width + whole)
        self.graph = layer(2 * width + whole)

    def forward(
        self, nodes: torch.Tensor, edges: torch.Tensor, whole: torch.Tensor,
        ends: list[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
        def beside(x: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
            of_graph = whole[:, None].expand(-1, x.shape[1], -1)
            return torch.cat([x, *parts, of_graph], 2)

        edges = self.edge(beside(edges, *(nodes.gather(1, end) for end in ends)))
        sums = [torch.zeros_like(nodes).scatter_add(1, end, edges) for end in ends]
        nodes = self.node(beside(nodes, *sums))
        whole = self.graph(torch.cat([nodes.sum(1), edges.sum(1), whole], 1))
        return nodes, edges, whole


class GraphNetwork(nn.Module):
    """Messages along the edges of molecules (Battaglia et al. 2018), as in AlgoPerf: 9
    features of an atom, 3 of a bond, labels of the whole."""

    def __init__(self, width: int, steps: int, labels: int) -> None:
        super().__init__()
        self.width, self.labels = width, labels
        self.nodes, self.edges = nn.Linear(9, width), nn.Linear(3, width)
        self.steps = nn.ModuleList(
            MessageStep(width, width if i else labels) for i in range(steps)
        )
        self.out = nn.Linear(width, labels)

    def forward(
        self, nodes: torch.Tensor, edges: torch.Tensor, senders: torch.Tensor,
        receivers: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        ends = [e[:, :, None].expand(-1, -1, self.width) for e in (senders, receivers)]
        nodes, edges = self.nodes(nodes), self.edges(edges)
        whole = nodes.new_zeros(len(nodes), self.labels)
        for step in self.steps:
            nodes, edges, whole = step(nodes, edges, whole, ends)
        return self.out(whole)


def graph_network_tiny() -> nn.Module:
    """A graph network as in AlgoPerf with 3 steps of 32: sums over the edges of 12 nodes."""
    return GraphNetwork(32, 3, 16)
