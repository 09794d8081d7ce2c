"""Models as people write them, with traps, for import_test: each is imported and
proven, or refused with a message that names what it has."""

# mypy: disallow-subclassing-any=False, warn-return-any=False

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn


class OneLayer(nn.Module):
    """One linear layer, the base of models whose forward holds the trap."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)


class Residual(nn.Module):
    """In-place ops, a sum into a value that is used again, a projection."""

    def __init__(self, inside: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out, eps=1e-3, momentum=0.3)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = None
        if stride > 1 or inside != out:
            self.down = nn.Sequential(
                nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        short = x if self.down is None else self.down(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += short
        return self.relu(x)


class Huge(nn.Module):
    """36 GiB of numbers: LSTMs between a table and the same table. No trace follows the
    branch, and what fails without one is found without computing."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(2**16, 2**14)
        self.lstm = nn.LSTM(2**14, 2**14, 4, batch_first=True)
        self.out = nn.Linear(2**14, 2**16, bias=False)
        self.out.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if ids.shape[0] >= 64:
            ids = ids.contiguous()
        return self.out(self.lstm(self.words(ids))[0])


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding="same")
        self.blocks = nn.ModuleList([Residual(8, 8), Residual(8, 16, 2)])
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        x = F.adaptive_avg_pool2d(x, 1)
        return self.fc(self.drop(torch.flatten(x, 1)))


class Tied(nn.Module):
    """One tensor under two names, and a module that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.shared = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.shared(self.first(x)))
        return self.second(torch.tanh(self.shared(x)))


class ViewAfterTranspose(nn.Module):
    """Rows and columns change places; sizes are computed from the input's."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(20, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, t = x.shape
        x = x.transpose(1, 2).contiguous().view(n, t * c // 2, 2)
        x = x.permute(0, 2, 1).reshape(x.size(0), -1)
        return self.fc(x)


class LeastNumbers(nn.Module):
    """What is least in float32 stands in norms and logarithms, also in their proof."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.norm = nn.RMSNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.fc(F.rms_norm(1e-3 * x, (6,))))
        mask = torch.tensor([0.0, 1.0] * 3) * torch.finfo(x.dtype).min
        x = torch.log(x.clamp(min=torch.finfo(x.dtype).eps)) + (x + mask).softmax(-1)
        return self.norm(x)


def sparse() -> nn.Module:
    made = OneLayer()
    made.register_buffer("edges", torch.eye(4).to_sparse())
    return made


class Padded(nn.Module):
    """Padding that differs by side, "same" with an even kernel, ceil_mode."""

    def __init__(self) -> None:
        super().__init__()
        self.even = nn.Conv2d(2, 4, (4, 2), padding="same", dilation=(1, 3))
        self.deep = nn.Conv2d(4, 4, 3, padding=(2, 1), stride=(1, 2), groups=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, (1, 0, 0, 2))
        x = F.max_pool2d(torch.sigmoid(self.even(x)), 3, 2, ceil_mode=True)
        x = F.avg_pool2d(self.deep(x), 2, 2, ceil_mode=True, count_include_pad=False)
        return x.flatten(1)


class FunctionalNorm(nn.Module):
    """Batch norm as a function, whose mode is that of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.shift = nn.Parameter(torch.zeros(3))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.batch_norm(
            self.conv(x), self.mean, self.var, self.scale, self.shift,
            training=self.training, momentum=0.25, eps=1e-4,
        )  # fmt: skip
        return x.mean([2, 3])


class OddNames(nn.Module):
    """Keys that no programming language takes as names, some equal but for them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(
            {
                "a b": nn.Linear(4, 4),
                "a-b": nn.Linear(4, 4),
                'say "hi"\n': nn.Linear(4, 4),
                "λ": nn.Linear(4, 4),
                "loss": nn.Linear(4, 4),
                "x": nn.Linear(4, 2),
            }
        )
        self.loss, self.y = nn.Tanh(), nn.Tanh()
        self.add_module("lambda", nn.Linear(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers.values():
            x = torch.tanh(layer(x))
        return getattr(self, "lambda")(self.y(self.loss(x)))


class Words(nn.Module):
    """A language model: ids, an LSTM of time first, logits for each word."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.rnn = nn.LSTM(6, 8, num_layers=2, dropout=0.1, bias=bias)
        self.head = nn.Linear(8, 11)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids).transpose(0, 1)
        x, _ = self.rnn(x)
        return self.head(x).transpose(0, 1)


class Offset(nn.Module):
    """A norm whose scale is 1 + w, and factors of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.fc = nn.Parameter(0.1 * torch.arange(6.0)), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        return self.fc(1.0 * (x * size * (1 + self.scale))) / 1.0


class Recurrences(nn.Module):
    """States that are handed on, cells in a loop, both directions, the last states."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(8, 8)
        self.gru = nn.GRU(5, 3, num_layers=2, batch_first=True, bidirectional=True)
        self.rnn = nn.RNN(5, 3, batch_first=True, nonlinearity="relu")
        self.cell, self.second = nn.LSTMCell(5, 4), nn.GRUCell(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        coded, (h, c) = self.encoder(x)
        state = (torch.cat([h[0], h[1]], 1)[None], torch.cat([c[0], c[1]], 1)[None])
        decoded, (_, last) = self.decoder(coded.transpose(0, 1), state)
        both, states = self.gru(x)
        _, hidden = self.rnn(x)
        a, b = x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], 4)
        d = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            a, b = self.cell(x[:, t], (a, b))
            d = self.second(a, d)
        parts = [
            decoded.transpose(0, 1),
            last[0],
            both,
            states[3],
            hidden[-1],
            a * b,
            d,
        ]
        return torch.cat([part.flatten(1) for part in parts], 1)


class GPT(nn.Module):
    """Ids and positions, a causal mask in two views of one table, a tied head."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(30, 16), nn.Embedding(12, 16)
        lower = torch.tril(torch.ones(12, 12))
        both = torch.stack((lower, 1 - lower))[:, None, None]
        self.register_buffer("mask", both[0])
        self.register_buffer("later", both[1])
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm, self.end = nn.LayerNorm(16), nn.LayerNorm(16, bias=False)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 30, bias=False)
        self.table.weight = self.head.weight

    def forward(
        self, ids: torch.Tensor, targets: None = None
    ) -> tuple[torch.Tensor, None]:
        n, t = ids.shape
        x = self.drop(self.table(ids) + self.places(torch.arange(t)))
        parts = self.qkv(self.norm(x)).split(16, dim=2)
        q, k, v = (part.view(n, t, 4, 4).transpose(1, 2) for part in parts)
        scores = (q @ k.transpose(-2, -1)) * 0.5
        hidden = (self.mask[:, :, :t, :t] == 0) & (self.later[:, :, :t, :t] == 1)
        scores = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        x = x + self.out((self.drop(scores) @ v).transpose(1, 2).reshape(n, t, 16))
        return self.head(self.end(x)), None


class Rotary(nn.Module):
    """A norm, positions and a gate as they are written by hand, in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))
        self.gate, self.up, self.down = (nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.float().pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(size + 1e-6).to(x.dtype) * self.scale
        steps = torch.arange(x.shape[1], dtype=torch.float32)
        angle = torch.outer(steps, 1 / 100 ** (torch.arange(0, 8, 2).float() / 8))
        turned = torch.cat((-x[..., 4:], x[..., :4]), -1)
        x = x * angle.cos().repeat(1, 2) + turned * angle.sin().repeat(1, 2)
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Signals(nn.Module):
    """Along one axis: dilated, padded at one side, pooled, normed by groups."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(4, 8, 2, dilation=2**i) for i in range(2))
        self.mix = nn.Conv1d(4, 4, 3, padding=1, groups=2, padding_mode="replicate")
        self.groups, self.batch = nn.GroupNorm(2, 4), nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, conv in enumerate(self.convs):
            a, b = conv(F.pad(x, (2**i, 0))).chunk(2, 1)
            x = x + self.mix(torch.tanh(a) * torch.sigmoid(b))
        x = self.groups(self.batch(x))
        return F.avg_pool1d(F.max_pool1d(x, 2), 2, stride=1).flatten(1)


class Pictures(nn.Module):
    """Resized in several ways, reflected, normed by pictures, pooled to odd sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
        self.norm = nn.InstanceNorm2d(4, affine=True)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.unfold = nn.Unfold(2, dilation=2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x))
        parts = [
            self.up(x), F.interpolate(x, (5, 9), mode="bicubic"), self.unfold(x),
            F.interpolate(x, scale_factor=2), F.adaptive_avg_pool2d(x, (4, 5)),
            F.layer_norm(x, [4, 6, 6]), F.pad(x, (1, 1, 2, 0), mode="circular"),
        ]  # fmt: skip
        return torch.cat([part.flatten(1) for part in parts], 1)


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.thin = nn.LayerNorm(5, bias=False)
        self.plain = nn.LayerNorm((6, 5), elementwise_affine=False)
        self.rms = nn.RMSNorm(5, eps=1e-4)
        self.instance = nn.InstanceNorm1d(6)
        self.out = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.plain(torch.sin(self.thin(x))))
        return self.out(self.instance(torch.sin(self.rms(h))))


class OneHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(7, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(F.one_hot(ids, 7).to(self.out.weight.dtype))


class Resizes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.out = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        h = F.interpolate(x, size=(7, 4))
        h = F.interpolate(h, size=(9, 9), mode="nearest-exact")
        h = F.interpolate(h, scale_factor=2, mode="bilinear")
        h = F.adaptive_max_pool2d(h, (11, 7))
        h = F.interpolate(h, size=(4, 11), mode="bilinear", align_corners=True)
        h = F.interpolate(h.flatten(2), size=30, mode="linear")
        h = F.interpolate(h, scale_factor=3, mode="nearest")
        h = h.reshape(-1, 3, 3, 5, 6)
        h = F.interpolate(h, size=(4, 2, 2), mode="trilinear", align_corners=True)
        return self.out(h.flatten(1, 3))


class Decoder(nn.Module):
    """Transposed convolutions as in UNets and GANs, with overlap and output padding."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.ConvTranspose2d(3, 4, 2, stride=2)
        self.gan = nn.ConvTranspose2d(4, 5, 4, stride=2, padding=1, bias=False)
        self.odd = nn.ConvTranspose2d(
            5, 2, (3, 2), (2, 3), (1, 0), output_padding=(1, 2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.gan(torch.tanh(self.twice(x))))
        return self.odd(x)


class PaddedWords(nn.Module):
    """A row of the table that is 0 and is not trained; gates of both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 6, padding_idx=2)
        self.rnn = nn.GRU(6, 5, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        _, last = self.rnn(self.table(ids))
        return self.head(torch.cat([last[0], last[1]], 1))


class Attention(nn.Module):
    """Heads by hand around scaled_dot_product_attention, causal."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))
        self.out = nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, width = x.shape
        y = self.norm(x)
        q, k, v = (
            f(y).view(n, t, 3, width // 3).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(n, t, width)
        return x + F.gelu(self.out(y), approximate="tanh")


class ConstantMasks(nn.Module):
    """Masks that attention has names for, as libraries hand them over, and two others."""

    def __init__(self) -> None:
        super().__init__()
        sides = torch.ones(5, 5).tril()
        band = sides.triu(-1)
        self.masks = [
            sides.bool(),
            torch.zeros(5, 5).masked_fill(sides == 0, torch.finfo(torch.float32).min),
            torch.zeros(1, 1, 5, 5).masked_fill(band == 0, float("-inf")),
            torch.ones(1, 5, dtype=torch.bool),
            sides.bool() | (torch.arange(5) < 2),  # a prefix that all see
            torch.stack([sides, band]).bool(),  # another in each head
            band.bool(),  # with dropout
        ]
        self.mixes = nn.ModuleList([nn.Linear(6, 6) for _ in self.masks])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, (mix, mask) in enumerate(zip(self.mixes, self.masks, strict=True)):
            y = mix(x).view(len(x), 5, 2, 3).transpose(1, 2)
            drops = 0.1 if self.training and i == 6 else 0.0
            y = F.scaled_dot_product_attention(y, y, y, mask, drops)
            x = x + y.transpose(1, 2).reshape(len(x), 5, 6)
        return x


class Functions(nn.Module):
    """Functions of one element, and of two, of numbers and the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.slopes = nn.PReLU(5, init=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        y = torch.sigmoid(x)
        parts = [
            F.silu(x), F.hardswish(4 * x), F.hardsigmoid(4 * x), F.relu6(9 * x),
            F.elu(x, 0.7), F.celu(x, 0.5), F.selu(x), F.leaky_relu(x, 0.3),
            F.softplus(x), F.softplus(x, beta=2.0), F.mish(x), F.softsign(x),
            F.logsigmoid(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.hardtanh(x),
            F.softshrink(x, 0.1), F.threshold(x, 0.2, -1.0), self.slopes(x),
            x**2, x**3, (2 + y) ** -4, y**0.5, y**-0.5, y**1.7, 2.0**x, 1 / y, y.rsqrt(),
            1 - x, x - 1, 3 * x, x / 3, -x, x.abs(), torch.exp(x), torch.log(y),
            torch.log1p(y), torch.expm1(x), torch.sin(x), torch.cos(x), torch.erf(x),
            torch.maximum(x, y), torch.minimum(x, y), x.clamp(min=-0.2),
            torch.where(x > 0.1, x, y), torch.where((x < 0) & (y >= 0.3), 0.0, x),
            torch.add(x, y, alpha=2), torch.rsub(x, y), torch.addcmul(x, x, y, value=0.5),
            torch.lerp(x, y, 0.3), x.masked_fill(x != y, 0.5), torch.floor(x) + x,
            F.softplus(x, 2.0, 0.5), torch.fmod(x, 0.7), torch.copysign(x, y - 0.5),
            torch.atan2(x, y - 0.6), torch.div(x, 0.3, rounding_mode="trunc") + x,
        ]  # fmt: skip
        return torch.cat(parts, 1)


class Reductions(nn.Module):
    """Along axes, with and without keeping them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        parts = [
            x.mean([2, 3]), x.mean(dim=(-1, -2), keepdim=True).flatten(1), x.mean(1).flatten(1),
            x.sum(3).flatten(1), x.amax((2, 3)), x.min(2).values.flatten(1),
            x.std(2).flatten(1), x.var((1, 3), unbiased=False), x.norm(dim=1).flatten(1),
            F.normalize(x, dim=1).flatten(1), torch.cumsum(x, 2).flatten(1),
            x.prod(2).flatten(1), x.argmax(1).flatten(1).float(), x.min(3).indices.flatten(1),
            x.softmax(1).flatten(1), F.avg_pool2d(x, 3, 2, 1).flatten(1),
            F.max_pool2d(x, 2, ceil_mode=True).flatten(1),
            F.adaptive_max_pool2d(x, 1).flatten(1), x.median(1).values.flatten(1),
            x.kthvalue(2, 1, True).values.flatten(1), x.cummax(1).values.flatten(1),
            x.logcumsumexp(2).flatten(1), torch.linalg.norm(x, "fro", (2, 3)),
        ]  # fmt: skip
        return torch.cat(parts, 1)


class Shapes(nn.Module):
    """Cut, joined, turned, rolled, repeated; written in place through views."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)  # N,4,8
        a, b = x.chunk(2, dim=-1)
        c, d, e = x.split([1, 3, 4], dim=2)
        first, *rest = x.unbind(1)
        y = x.clone()
        y[:, 1:3] = y[:, 1:3] * 2
        y[:, 0, :2] += 1
        z = x.view(-1, 2, 2, 8)
        parts = [
            a * b, torch.cat((c, d, e), 2).roll(3, 2), torch.stack([first, *rest], 2),
            x.flip(1), x.roll((1, 2), (1, 2)), y, z.transpose(1, 2), x[:, [0, 2]].repeat(1, 2, 1),
            x[:, :, [5, 0, 0]], x[..., torch.tensor([[1, 1], [7, 2]])],
            x[..., None].expand(-1, -1, -1, 2), x.repeat_interleave(2, dim=1),
            x.narrow(1, 1, 2), x[:, :, 1:7:2], x.unsqueeze(1).movedim(1, 3),
            F.pad(x, (1, 2, 0, 1)), F.pad(x, (-1, 0)), F.glu(x, 1),
            F.pixel_shuffle(z, 1), torch.tril(x), x.mT,
        ]  # fmt: skip
        return torch.cat([part.flatten(1) for part in parts], 1)


class AnyInputs(nn.Module):
    """Inputs without names of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, first: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        return self.fc(first + more[0] * more[1])


class Merged(nn.Module):
    """The batch merged with windows and heads, behind time, and expanded."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, dropout=0.1)  # time first, with weights
        self.norm = nn.BatchNorm1d(8)
        self.conv = nn.Conv2d(8, 8, (3, 2), stride=(2, 1), padding=1, groups=4)
        self.wide = nn.ConvTranspose2d(8, 8, (1, 2), (1, 2), (0, 1), groups=2)
        self.groups = nn.GroupNorm(4, 8, eps=0.1)
        self.line = nn.Conv1d(8, 8, 3, padding=1, groups=2)
        self.each = nn.InstanceNorm2d(8, affine=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape  # N,8,6,6: four windows of 3x3
        windows = x.view(n, c, 2, h // 2, 2, w // 2).permute(0, 2, 4, 1, 3, 5)
        windows = windows.reshape(n * 4, c, h // 2, w // 2)
        windows = self.conv(windows) + F.max_pool2d(windows, 2, 1)[:, :, :, :1]
        windows = self.each(self.wide(self.groups(windows)))
        line = self.line(F.adaptive_max_pool2d(windows, (1, 6)).squeeze(2))
        windows = windows + line.unsqueeze(2)
        t = windows.flatten(2).transpose(1, 2)  # N*4,tokens,8
        t = self.norm(t.reshape(-1, c)).view(t.shape)
        t = t.reshape(n, -1, c)
        t = torch.cat((self.token.expand(n, -1, -1), t), dim=1)
        t = t.transpose(0, 1)
        seen, weights = self.mha(t, t, t)
        t = (t + seen + weights.sum(-1).mT.unsqueeze(-1)).transpose(0, 1)
        t = self.layer(t)
        q = torch.einsum("btc,bsc->bts", t, t).softmax(-1)
        return self.head(torch.einsum("bts,bsc->btc", q, t)).mean(1)


class Tokens(nn.Module):
    """Ids that are compared, counted and computed with; a table that is also the head."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.bag = nn.EmbeddingBag(11, 6, mode="mean")
        self.hashed = nn.Embedding(5, 6)
        self.layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, dropout=0.0)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        padding = ids == 0
        x = self.table(ids) + self.hashed((ids * 3 + 1) % 5)
        x = self.layer(x, src_key_padding_mask=padding & (ids.roll(1, 1) < 9))
        keep = (~padding).unsqueeze(-1).float()
        x = (x * keep).sum(1) / keep.sum(1).clamp(min=1) + self.bag(ids)
        return x @ self.table.weight.t()


class Columns(nn.Module):
    """A table for each column of categories, all of other sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 3) for n in (5, 2, 7))
        self.norm = nn.BatchNorm1d(2)
        self.fc = nn.Linear(11, 1)

    def forward(self, x: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        parts = [table(kinds[:, i]) for i, table in enumerate(self.tables)]
        return self.fc(torch.cat([self.norm(x), *parts], 1)).squeeze(1)


class Twins(nn.Module):
    """One network for both inputs: both calls move the statistics of its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.PReLU())
        self.scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = self.net(a), self.net(b)
        apart = self.scale * F.pairwise_distance(a, b)
        return torch.stack([apart, F.cosine_similarity(a, b)], 1)


class Formulas(nn.Module):
    """Ops without a row of their own, which torch's formulas stand for; einsum in full."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.bilinear = nn.Linear(4, 4), nn.Bilinear(4, 4, 3)
        self.experts = nn.Parameter(torch.randn(3, 4, 2) * 0.3)
        self.tied = nn.Parameter(torch.randn(2, 4) * 0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        a, b, c = y[:, 0], y[:, 1], y[:, 2]
        z = y.clone()
        z[:, ::2] = 0.5
        z[..., 1::2] *= y[..., :2]
        each = torch.bmm(a.expand(3, -1, -1), self.experts).transpose(0, 1)
        down = F.linear(torch.sigmoid(F.linear(b, self.tied)), self.tied.t())
        parts = [
            self.bilinear(a, b), torch.hstack([a, b]), F.hardshrink(y), z, each, down,
            torch.einsum("...i,oi->...o", y, self.tied), torch.einsum("bi,bj,bk->bj", a, b, c),
            torch.diagonal(y[:, :4], dim1=1, dim2=2), y.norm(p=3, dim=1), torch.hypot(a, b),
            y.norm(p=float("inf"), dim=2), torch.sinh(a), torch.exp2(b),
            torch.log10(c.abs() + 1), torch.atan(a), torch.asin(torch.sin(b) * 0.9), torch.acos(torch.sin(c) * 0.9),
            F.instance_norm(y), (a > b).float(), (y > 0).sum(1) / 3, torch.remainder(a, 0.7),
        ]  # fmt: skip
        return torch.cat([part.flatten(1) for part in parts], 1)


class AddedMask(nn.Module):
    """nn.MultiheadAttention with a mask of -inf that is added, and all its options."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.MultiheadAttention(8, 2, batch_first=True)
        self.cross = nn.MultiheadAttention(
            8, 4, kdim=5, vdim=3, add_bias_kv=True, add_zero_attn=True, batch_first=True
        )
        self.key, self.other = nn.Linear(8, 5), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        y, weights = self.plain(x, x, x, attn_mask=mask, need_weights=True)
        z, _ = self.cross(x, self.key(x), self.other(x))
        return torch.cat((y, z, weights), -1)


class PaddedHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4, padding_idx=0)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.table.weight  # trains the row that pads, too

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids))


class CountsBehindAView(nn.Module):
    """Made functional first, where the buffer's change is no op any more."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        x[:, 0].mul_(2)
        if self.training:
            self.seen += 1
        return x + self.seen


class SeesAPart(nn.Module):
    """A buffer that is a part of a trained weight moves with it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("part", self.fc.weight.data[:2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) * self.part.sum()


class TrainsAPart(nn.Module):
    """A parameter that is a part of another one moves with it."""

    def __init__(self) -> None:
        super().__init__()
        self.whole = nn.Parameter(torch.randn(4, 4))
        self.part = nn.Parameter(self.whole.data[:2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.whole + (x @ self.part.t()).sum(1, keepdim=True)


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.fc.weight.register_hook(lambda gradient: gradient * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class Teacher(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.old = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            wanted = self.old(x)  # NO GRADIENT
        return self.fc(x) - wanted


def spectral() -> nn.Module:
    model = Teacher()
    torch.nn.utils.parametrizations.spectral_norm(model.fc)
    return model


class Averaged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, momentum=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.jit.script(nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x)


class Complex(nn.Module):
    """A neural operator: parameters that are complex themselves, as is what they are
    written into."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Parameter(0.3 * torch.rand(2, 3, 2, dtype=torch.cfloat))
        self.turn = nn.Parameter(torch.ones(3, dtype=torch.cfloat))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        waves = torch.fft.rfft(x)
        made = torch.zeros(len(x), 3, waves.size(-1), dtype=torch.cfloat)
        made[..., :2] = torch.einsum("bix,iox->box", waves[..., :2], self.mixed)
        return torch.fft.irfft(made * self.turn, n=4)


class Reversible(torch.autograd.Function):
    """Keeps nothing of its layers but what comes out, and computes them again."""

    @staticmethod
    def forward(ctx, x, layers):  # type: ignore[no-untyped-def]
        ctx.layers = layers
        a, b = x.chunk(2, 1)
        with torch.no_grad():
            for layer in layers:
                a, b = b, a + F.dropout(layer(b), 0.2, layer.training)
        ctx.made = a.detach(), b.detach()
        return torch.cat([a, b], 1)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        assert ctx.layers.training
        (a, b), (da, db) = ctx.made, gradient.chunk(2, 1)
        for layer in reversed(ctx.layers):
            a = a.detach().requires_grad_()
            with torch.enable_grad():
                again = F.dropout(layer(a), 0.2, layer.training)
            again.backward(db)
            a, b, da, db = b - again.detach(), a, db, da + a.grad
        return torch.cat([da, db], 1), None


class RevNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 6)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in "ab"
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Reversible.apply(self.stem(x), self.layers)


class Experts(nn.Module):
    """Experts of two kinds of code, each of which sees the rows that chose it: as
    masks and a branch, and as places; `how` of a third kind, rows added in place."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how = how
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1)) for _ in range(3)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, 4)
        weights, chosen = self.gate(rows).softmax(-1).topk(2)
        if self.how == "rows":
            made = torch.zeros_like(rows)
            for i, expert in enumerate(self.experts):
                row, place = torch.where(chosen == i)
                made[row] += weights[row, place, None] * expert(rows[row])
            return made.view_as(x)
        made = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = (chosen == i).any(-1)
            if mask.any():  # no expert without a row
                made[mask.view(x.shape[:-1])] += expert(rows[mask]) * weights[mask, :1]
        found = F.one_hot(chosen, 3).permute(2, 1, 0)
        added = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            place, row = torch.where(found[i] > 0)
            own = expert(rows[None, row].reshape(-1, 4)) * weights[row, place, None]
            added.index_add_(0, row, own.to(x.dtype))
        return made + added.view_as(x)


def experts_by_rows() -> nn.Module:
    return Experts("rows")


class Strided(OneLayer):
    """Windows that overlap, seen in place; an expand that is reshaped and added."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x).contiguous()
        windows = y.as_strided((len(x), 5, 2, 4), (24, 4, 4, 1))[:, ::2]
        twice = x[:, 0, None].expand(len(x), 2, 4).flatten(0, 1).clone()
        twice += torch.tanh(y[:, 1:3].flatten(0, 1))
        return torch.cat([windows.flatten(1), twice.view(-1, 8)], 1)


class Wrapped(nn.Module):
    """Hands on what it is given, as the models of peft do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Bilinear(4, 4, 3)

    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        return self.inner(*args, **kwargs)


class MakesItsMask(OneLayer):
    """In calls alone."""

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None and not torch.compiler.is_compiling():
            mask = torch.ones(x.shape[:1])
        return self.fc(x) * mask.unsqueeze(1)  # type: ignore[union-attr]


class LooksForNegatives(OneLayer):
    """A branch on a mask that selects no rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        below = x[:, 0] < 0
        if below.any():  # MASK BRANCH
            x = x * 2
        return self.fc(x)


class SelectsToMix(OneLayer):
    """What stands between selecting rows and putting them back mixes them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask, made = x[:, 0] < 0, torch.zeros_like(x)
        made[mask] = self.fc(x[mask]).cumsum(0)  # OF SELECTED ROWS
        return made


class GivesSelected(SelectsToMix):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x[x[:, 0] < 0])


class CannotTrain(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.sigmoid(self.fc(x))
        y = x * 2
        x.mul_(3)  # the sigmoid's gradient needs what it was
        return x + y


class Roots(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(self.fc(x))


class Branches(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        if self.training:
            x = x * x  # TRAINING BRANCH
        return torch.relu(x)


class AlwaysDrops(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(self.fc(x), 0.3)  # ALWAYS DROPS


class Looks(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        if x.sum() > 0:  # DATA BRANCH
            x = torch.relu(x)
        return x


class FixedBatch(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x.view(8, 4))  # FIXED BATCH


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return 2 * x

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return 3 * grad  # not the gradient of what forward computes


class OwnBackward(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Twice.apply(self.fc(x))  # OWN BACKWARD


class StopsGradients(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        return torch.relu(y) + y.detach()  # DETACH


class Unsupported(OneLayer):
    """Two ops without a counterpart: both must be named."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        x = x * torch.lgamma(x)  # LGAMMA
        return x + torch.mode(x, dim=1, keepdim=True).values  # MODE


class BesideAFormula(OneLayer):
    """torch has a formula of one; that of the other cannot be traced."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardshrink(self.fc(x))
        return nn.functional.rrelu(x, training=self.training)  # NOISY SLOPE


class OwnLoss(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc.weight.square().sum()


class MixesRows(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        return x - x.mean(0, keepdim=True)  # OVER THE BATCH


class ChangesBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1  # BUFFER
        return self.fc(x) + self.calls


class TwoOutputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.a(x), "other": self.b(x)}


class Heads(nn.Module):
    """Outputs of unlike shapes, which a script of predictions gives one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 6, 3), nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        h = self.conv(x)
        masks = torch.tanh(h).unflatten(1, (3, 2))
        pooled = h.mean((2, 3))
        scores = self.fc(pooled)
        return {
            "masks": masks,
            "scores": scores,
            "again": scores,
            "best": pooled.amax(1),
            "pairs": torch.relu(pooled).view(
                -1, 2, 3
            ),  # flattened it is what was there
        }


class HiddenScale(nn.Module):
    """Not what it exports: for a mapping that is wrong on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = torch.sigmoid(x)  # WRONG ON PURPOSE
        return self.second(x)


words = Words(bias=False)  # a module itself


def words_with_biases() -> nn.Module:
    return Words()


def needs(size: int) -> nn.Module:
    return nn.Linear(size, size)


def gives_nothing() -> None:
    return None


def fails() -> nn.Module:
    raise ValueError("no weights here")  # FAILS


def weight_norm() -> nn.Module:
    return nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)),
        nn.Tanh(),
        nn.Linear(4, 2),
    )


class Standardised(nn.Module):
    """Convolutions whose weights are computed: standardised, and normed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
        self.gain = nn.Parameter(torch.full((6,), 0.7))
        self.normed = nn.utils.parametrizations.weight_norm(nn.Conv2d(6, 3, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        c = self.conv
        flat = c.weight.reshape(1, 6, -1)
        weight = F.batch_norm(flat, None, None, self.gain, training=True, momentum=0.0)
        x = F.conv2d(x, weight.reshape_as(c.weight), c.bias, 2, 1, 1, 2)
        return self.normed(torch.relu(x)).flatten(1)


def frozen_norm() -> nn.Module:
    """Batch norm that stays in inference mode."""

    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.bn.eval()
            return self.bn(self.conv(x)).mean((2, 3))

    return Frozen()


def still_norms() -> nn.Module:
    """Instance norms in evaluation mode, one of rows that are merged with the batch."""

    class Still(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.drop = nn.Conv2d(2, 4, 3), nn.Dropout(0.1)
            self.d2 = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
            self.d3 = nn.InstanceNorm3d(4, eps=1e-3, track_running_stats=True)
            self.d1 = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
            for norm in (self.d2, self.d3):
                norm.running_mean.normal_()
                norm.running_var.uniform_(0.5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.drop(self.d2(self.conv(x)))
            h = self.d3(h[:, :, None]).squeeze(2)
            n, c, rows, columns = h.shape
            h = self.d1(h.transpose(1, 2).reshape(n * rows, c, columns))
            return h.reshape(n, rows, c, columns)

    return Still().eval()


def moving_norms() -> nn.Module:
    return still_norms().train()


class RotaryBlock(nn.Module):
    """As language models are written today: norms by hand, tables of the model that
    every block reads, fewer heads of keys than of queries."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = nn.Parameter(torch.ones(width))
        self.query = nn.Linear(width, width, bias=False)
        self.pair = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        n, t, width = x.shape
        size = width // self.heads
        h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        q = self.query(h).view(n, t, self.heads, size).transpose(1, 2)
        k, v = self.pair(h).view(n, t, 2, self.heads // 2, size).permute(2, 0, 3, 1, 4)
        q, k = (
            y * cos[:t]
            + torch.cat([-y[..., size // 2 :], y[..., : size // 2]], -1) * sin[:t]
            for y in (q, k)
        )
        k, v = (y.repeat_interleave(2, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(n, t, width))


class RotaryBlocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 16)
        self.blocks = nn.ModuleList(RotaryBlock(16, 4) for _ in range(2))
        angles = torch.outer(torch.arange(9.0), 10.0 ** -torch.arange(2.0)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.linear(x, self.words.weight)


class NormsByHand(nn.Module):
    """One is spelled with a quotient, one has no scale, one is none."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.gain = (
            nn.Parameter(torch.rand(6)),
            nn.Parameter(torch.rand(())),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.scale * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5))
        two = (
            one
            * torch.rsqrt(one.square().mean(dim=-1, keepdim=True) + 1e-3)
            * self.gain
        )
        size = torch.rsqrt(two.square().mean(dim=1, keepdim=True) + 1e-3)
        return two * size + size


class Masked(nn.Module):
    """Masks of -inf with distances, and of the least number of its type, as libraries
    spell attention out; a truth value in a product."""

    def __init__(self) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.rand(3, 1, 1))
        self.mix = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = torch.arange(x.shape[1])
        apart = (t[:, None] - t[None, :]).float()
        kernel = torch.exp(-self.decay * apart.clamp(min=0)) * (apart >= 0)
        x = torch.einsum("cts,nsc->ntc", kernel, x)
        slopes = torch.tensor([[[0.5]]]) * -apart.abs()
        mask = slopes + torch.full_like(apart, float("-inf")).triu(1)
        y = self.mix(x).unsqueeze(1)
        y = F.scaled_dot_product_attention(y, y, y, attn_mask=mask).squeeze(1)
        least = torch.full(apart.shape, torch.finfo(y.dtype).min).triu(1)
        return torch.softmax(y @ y.transpose(1, 2) + least, -1) @ y


class NormedSignals(nn.Module):
    """Weight norm of layers along one axis, in both of its spellings."""

    def __init__(self) -> None:
        super().__init__()
        spelled = nn.utils.parametrizations.weight_norm
        self.first = spelled(nn.Conv1d(3, 4, 3, padding=4, dilation=2))
        self.up = spelled(nn.ConvTranspose1d(4, 3, 4, 2, padding=1))
        self.plane = spelled(nn.ConvTranspose2d(1, 2, 3, stride=(2, 1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.up(torch.relu(self.first(x)[:, :, :-4]))
        return self.plane(x.unsqueeze(1))


class CountsRows(nn.Module):
    """len and int take the batch size out of the trace."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, 4))
        self.mix = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.first.expand(len(x), 1, -1), x], dim=1)
        windows = self.mix(x.reshape(-1, 3, 4))
        rows = int(windows.shape[0] / (6 / 3))
        return windows.view(rows, 2, 3, 4).flatten(1)


class Distances(nn.Module):
    """Of points from others and from themselves, where a root has no slope; norms of
    rows of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(3, 5))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        near = F.pairwise_distance(x, y) + F.pairwise_distance(x, y, p=1.0)
        pairs = torch.cdist(x.view(-1, 1, 5), y.view(-1, 1, 5))
        far = torch.cdist(x.unsqueeze(1), self.centres.unsqueeze(0), p=1.0)
        own = torch.cdist(*2 * [(self.centres * x[:, None]).repeat(1, 2, 1)]).mean(1)
        zeros = x[:, None] * self.centres.sin() * torch.tensor([[0.0], [1.0], [0.0]])
        unit = F.normalize(zeros, dim=-1) + zeros.std(-1, keepdim=True)
        norms = zeros.norm(dim=-1) + zeros.norm(p=3, dim=-1) + unit.sum(-1)
        norms = norms + F.cosine_similarity(zeros, x[:, None], dim=-1)
        norms = norms + torch.fft.rfft(zeros).abs().sum(-1)
        near = near + norms.sum(-1) + own.sum(-1)
        parts = [near.unsqueeze(1), pairs.flatten(1), far.flatten(1)]
        return torch.logaddexp(torch.cat(parts, 1), torch.arcsinh(x))


class PaddedBag(nn.Module):
    """A table with a row that pads: what keeps it from training has a name of its own
    in every framework."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.out = nn.Linear(4, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.words(ids).sum(1))


def spectral_by_hook() -> nn.Module:
    model = Teacher()
    torch.nn.utils.spectral_norm(model.fc)
    return model


class Factors(nn.Module):
    """One table for all columns of ids, each of which begins at a row of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(23, 4)
        self.begins = torch.tensor([0, 7, 18])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        rows = self.table(ids + self.begins)
        return rows.sum(1).square() - rows.square().sum(1)


class Queries(nn.Module):
    """What is the same in all rows, and drops differently in each (DETR, Tacotron 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, 5, 8))
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True)
        self.lstm = nn.LSTM(8, 8, 2, dropout=0.4, batch_first=True)
        self.size, self.turn = (
            nn.Parameter(torch.ones(())),
            nn.Parameter(torch.randn(8)),
        )
        self.table, self.drop = nn.Parameter(torch.randn(5, 8)), nn.Dropout(0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.queries.expand(len(x), -1, -1)
        first = self.drop(q)
        if self.training:  # stochastic depth
            q = q * x.new_empty(len(x), 1, 1).bernoulli_(0.75).div_(0.75)
        own = self.attention(q, q, q, need_weights=False)[0]
        channels = nn.functional.dropout1d(q, 0.1, self.training)
        one_mask_for_all_rows = self.drop(self.table)
        direction = self.size * self.turn / self.turn.norm().square().sqrt()
        x = x * direction  # normed attention (GNMT)
        return self.lstm(first + own + channels)[0] + one_mask_for_all_rows + x


class Cache:
    """A class that no export knows (transformers' DynamicCache)."""

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held


class WordsOfMasks(nn.Module):
    """Masks of integers and truth, a tied table with padding, places of its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 8, padding_idx=0)
        self.head = nn.Linear(8, 30)
        self.head.weight = self.table.weight
        self.other = nn.Linear(8, 8)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, gone: torch.Tensor, t: torch.Tensor
    ) -> dict[str, object]:
        x = self.table(ids) + t.double()[:, None, None] / 1000
        rows, columns = torch.arange(len(ids)), torch.arange(ids.shape[1])
        seen = mask.bool()[rows[:, None, None], columns[None, None, :]]
        scores = x @ x.transpose(1, 2) + (1.0 - mask[:, None, :].to(x.dtype)) * -1e4
        x = torch.softmax(scores.masked_fill(~seen, -1e4), -1) @ x
        x = x.masked_fill(gone[..., None], 0.0)
        last = x[torch.arange(len(x)), ids.argmax(-1)]
        made = {"logits": self.head(x + last[:, None]), "past": Cache(x)}
        if self.training:
            made["auxiliary"] = self.other(x)
        return made


class Places(nn.Module):
    """Pools and sizes that the IR has no op for, and a long loop."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.cell = nn.Linear(4, 4)
        self.pools = nn.ModuleList(
            [
                nn.MaxPool2d(3, 2, 1, dilation=2),
                nn.MaxPool2d(2, 3, 1, dilation=(1, 3), ceil_mode=True),
                nn.AvgPool2d(3, 2, 1, ceil_mode=True),
                nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
                nn.AvgPool2d(5, 4, 2, ceil_mode=True, divisor_override=3),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] >= 64:  # a layout for large batches (diffusers)
            x = x.contiguous()
        x = torch.relu(self.conv(x))
        sized = [
            nn.functional.interpolate(pool(x), size=(5, 4), mode=mode, antialias=True)
            for pool, mode in zip(self.pools, ["bilinear", "bicubic"] * 3, strict=False)
        ]
        h, frames = sum(sized).mean((2, 3)), []
        for _ in range(70):
            h = torch.tanh(self.cell(h))
            frames.append(h)
        return torch.stack(frames, 1)


class GrowsBeyond20(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) * 2 if x.shape[0] > 20 else self.fc(x)  # BATCH BRANCH


class GrowsBeyond128(OneLayer):
    """The first branch changes nothing, the second one does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] >= 64:
            x = x.contiguous()
        return self.fc(x) * 2 if x.shape[0] > 128 else self.fc(x)


class GrowsBeyond1000(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] < 6:  # on both sides of the batch of the example
            x = x.contiguous()
        return self.fc(x) * 2 if x.shape[0] > 1000 else self.fc(x)


class Blind(nn.Module):
    """Rows whose mask may leave no key."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        return self.attention(x, x, x, key_padding_mask=ids == 0, need_weights=False)[0]


class Chosen(nn.Module):
    """Places: constant ones along several axes, computed ones, a rest of size 0."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.table = nn.Parameter(torch.randn(11, 2))
        self.scales = nn.Parameter(torch.randn(8, 2, 3))

    def forward(self, x: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        x, rest = self.fc(x).split([8, 0], -1)
        x = torch.cat([x, rest], -1)
        rows, columns = torch.triu_indices(6, 6, 1)
        pairs = (x @ x.transpose(1, 2))[:, rows, columns]
        mesh = x.view(-1, 6, 2, 4)[:, [[0], [2]], :, [1, 3]].movedim(2, 0)
        steps = torch.arange(6)
        bias = self.table[steps[:, None] - steps + 5].mean(-1)
        shifted = torch.gather(
            x, 2, ((steps[:, None] + steps) % 8).expand(len(x), 6, 6)
        )
        end = x.gather(1, last[:, None, None].expand(-1, 1, 8))
        best, at = x.topk(2, -1)
        routed = torch.zeros_like(x).scatter(-1, at, best.softmax(-1))
        weighed = torch.einsum("nk,nkij->nij", best[:, 0], self.scales[at[:, 0]])
        y = torch.zeros_like(x)
        y[:, [0, 2]] = x[:, [1, 3]]
        y[:, 4:5] += x[:, :1]
        y[y > 1] = 0.5
        y = y.index_add(1, torch.tensor([0, 0, 5]), x[:, :3])
        y = y.scatter_add(1, (steps % 3)[:, None].expand(len(x), 6, 8), x)
        return torch.cat(
            [
                t.flatten(1)
                for t in (pairs, mesh, shifted + bias, end, routed, weighed, y)
            ]
            + [x.repeat_interleave(torch.tensor([1, 0, 2]).repeat(2), 1).mean(1)],
            1,
        )


class Placed(nn.Module):
    """Places that are inputs, or computed, in every spelling; the same for all of an axis
    or not, of batches that are merged too."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        wide = ids[:, :, None].expand(-1, -1, 8)
        rows = torch.arange(len(x))[:, None]
        ends = x.gather(1, wide) + x[rows, ids] + x.take_along_dim(ids[..., None], 1)
        apart = x.gather(2, ids[:, :, None] + 0) * x.gather(1, ids[:, :, None])
        sums = torch.zeros_like(x).scatter_add(1, wide, ends)
        more = x.scatter_reduce(1, wide, x.tanh()[:, :5], "sum")
        lines = x.unflatten(2, (2, 4)).transpose(1, 2)
        lines = lines.gather(2, ids[:, None, :, None].expand(-1, 2, 5, 4))
        flat = x.flatten(0, 1)
        best, at = flat.topk(2, -1)
        routed = flat.tanh().gather(1, at) * best.softmax(-1)
        spread = torch.zeros_like(flat).scatter(1, at, routed)
        parts = (ends, apart, sums, more, lines, spread.unflatten(0, (-1, 6)))
        return torch.cat([t.flatten(1) for t in parts], 1)


class Batches(nn.Module):
    """Batches one behind the other: pairs that one network reads, and repeated rows."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        both = self.tower(torch.cat([x, y], 0))
        first, second = both.chunk(2)
        apart = both[: len(x)] - both[len(x) :]
        return (
            first * second + apart + self.tower(x.repeat(2, 1, 1, 1))[: len(x)]
        ).mean(1)


class Pairs(nn.Module):
    """Complex numbers: rotary positions, a filter of frequencies, a mixing of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.filter = nn.Parameter(torch.randn(4, 8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        angles = torch.outer(torch.arange(6.0), 0.1 ** torch.arange(4.0))
        turns = torch.polar(torch.ones_like(angles), angles)
        turned = torch.view_as_complex(x.reshape(*x.shape[:2], 4, 2)) * turns
        x = x + torch.view_as_real(turned).flatten(2)
        waves = torch.fft.rfft(x, dim=1, norm="ortho")
        filtered = torch.fft.irfft(
            waves * torch.view_as_complex(self.filter), n=6, dim=1
        )
        return (
            torch.fft.fftn(x, dim=(1, 2)).real + filtered + waves.abs().mean(1)[:, None]
        )


class Odds(nn.Module):
    """Ops that are spelled by others: products along an axis, bins, truth values, norms
    and kernels that are computed, sizes that are no multiple."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(8))
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv3d(1, 1, (1, 3, 3)))
        self.bins = nn.Embedding(4, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.layer_norm(x * self.scale, (8,), self.scale + 1)
        x = x * torch.sigmoid(x).cumprod(1) + ((x > 0) ^ (x < 1)).to(x.dtype)
        x = torch.where(torch.isfinite(x), x.nan_to_num(), 0.0)
        x = x + self.bins(torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]))).mean(-1)
        seen = (x > 0).int().cumsum(1).type_as(torch.zeros(1, dtype=torch.int64))
        x = (
            x
            + F.cosine_similarity(x[:, :, None], x[:, None], dim=-1).mean(1)[..., None]
            * seen
        )
        wide = F.interpolate(
            self.conv(x[:, None, None]).squeeze(1), scale_factor=1.7, mode="bilinear"
        )
        return torch.max(wide, torch.full((), torch.finfo(x.dtype).min)).flatten(1)


class DropsPaths(nn.Module):
    """Stochastic depth as it was written before torch had it; a table whose gradient is
    sparse; bags with weights; an LSTM that projects; a grid that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 8, sparse=True)
        self.bag = nn.EmbeddingBag(9, 8, mode="sum", padding_idx=2)
        self.mean = nn.EmbeddingBag(9, 8, padding_idx=2)
        self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True, proj_size=4)
        self.grid = nn.Linear(8, 6)
        with torch.no_grad():
            self.grid.bias.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))

    def dropped(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        noise = 0.75 + torch.rand(shape, dtype=x.dtype)
        noise.floor_()
        return x.div(0.75) * noise

    def forward(self, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        x = x + self.dropped(self.lstm(x)[0])
        bags = self.bag(ids, per_sample_weights=weights) + self.mean(ids)
        x = self.dropped(x) + bags[:, None]
        grid = F.affine_grid(
            self.grid(bags).view(-1, 2, 3), [len(x), 1, 5, 6], align_corners=False
        )
        return F.grid_sample(x[:, None], grid, align_corners=False).squeeze(1)


class Bounded(torch.autograd.Function):
    """Its backward is the gradient of its forward."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)  # type: ignore[attr-defined]
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s))


class SameBackward(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Bounded.apply(self.fc(x))


class TossesCoins(OneLayer):
    """A layer that Python's own random numbers leave out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and random.random() < 1e-9:
            return x
        return self.fc(x)


class WritesInto(nn.Module):
    """Values that are written into constants, and constants into each other."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, state = torch.zeros_like(x), x[:, 0]
        for t in range(6):
            state = torch.tanh(self.cell(state)) + x[:, t]
            out[:, t] = state
        if torch.isfinite(out).all():
            out = out * 2
        ones, zeros = torch.zeros(6, 8), torch.zeros(6, 8)
        ones[:, 0] = 1  # alike until now
        both = x.new_empty(x.shape[0], 6, 16)
        both[..., :8] = out * (ones + 0.5)
        both[..., 8:] = self.cell(x) + zeros
        return both


class ReadsBeyond(nn.Module):
    """Ids of its own that its table lacks."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table((x > 9).long() + 4)


class MasksByHand(nn.Module):
    """Dropout as people write it: by comparisons, of rows, of places, of the batch;
    words that are replaced at random."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.fc = nn.Linear(6, 6)

    def masked(self, x: torch.Tensor) -> torch.Tensor:
        rows = (torch.rand(len(x)) >= 0.2).to(x.dtype)[:, None, None]
        x = x + self.fc(x) * rows / 0.8
        gone = torch.rand(len(x), x.shape[1], 1) < 0.3
        x = x + torch.where(gone, torch.zeros_like(x), self.fc(x) / 0.7)
        x = x + self.fc(x).masked_fill(0.4 > torch.rand_like(x), 0.0) / 0.6
        x = x + self.fc(x) * torch.bernoulli(torch.full_like(x, 0.9)).div_(0.9)
        kept = torch.zeros(len(x), 1, 6).uniform_(0, 1) > 0.1
        x = x + self.fc(x) * kept.expand_as(x).float() / 0.9
        return x + self.fc(x) * torch.empty(1, 1, 6).bernoulli_(0.55) / 0.55

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        if self.training:
            ids = torch.where(torch.rand(ids.shape) < 0.15, 3, ids)
        x = self.words(ids)
        if self.training:
            return self.masked(x)
        for _ in range(6):
            x = x + self.fc(x)
        return x


class SetsWeights(nn.Module):
    """The first batch says where its scales begin."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.known = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.known:
            self.scale.data.copy_(1 / (x.std(0) + 1e-6))
            self.known = True
        return x * self.scale


class BoundsWeights(OneLayer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.fc.weight.clamp_(-2, 2)  # BOUNDS
        return self.fc(x)


class HidesWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(4, 4)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[0](x)


class SharesMemory(nn.Module):
    """Two parameters in one memory: an optimizer with moments moves it twice."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.two.weight.data = self.one.weight.data

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x))


class Remembers(nn.Module):
    """Its state lasts from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.fc(x) / self.calls


class Spelled(nn.Module):
    """A parameter's data, gates of -inf, the best columns of a table, means by places,
    distributions, complex numbers less a real one."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(6))
        self.weigh = nn.Parameter(torch.randn(6))
        self.poles = nn.Parameter(torch.rand(6) * 3)
        self.fc = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        y = self.fc(x) * self.gain.data
        best, places = y.topk(2, -1)
        gates = torch.full_like(y, -torch.inf).scatter(1, places, best).softmax(-1)
        most, columns = self.weigh.topk(3)
        y = y * gates + (x[:, columns] * most).sum(1, keepdim=True)
        means = torch.ones_like(y).scatter_reduce(1, ids, y, "mean", include_self=False)
        mask = torch.where(x > 0, 0.0, -2.0)
        likely = torch.distributions.Normal(x, y.exp()).log_prob(means)
        turned = torch.exp(1j * self.poles) - 0.5
        waves = torch.fft.rfft(torch.cat([x, x], -1))[:, 1:] / turned
        return likely + mask + waves.real * waves.imag


class Windowed(nn.Module):
    """Each place sees three, among those that the mask has."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 8)
        self.qkv = nn.Linear(8, 24)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.words(ids))[:, None].chunk(3, -1)
        at = torch.arange(ids.shape[1])
        near = (at[:, None] - at[None]).abs() < 2
        seen = near & (mask != 0)[:, None, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)[:, 0]


class PackedRows(nn.Module):
    """Rows of other lengths: by their words, and by an input; states of both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.gru = nn.GRU(4, 3, 2, bidirectional=True, batch_first=True)
        self.lstm = nn.LSTM(6, 3, bidirectional=True)
        self.fc = nn.Linear(12, 2)

    def forward(self, ids: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        words = (ids != 0).sum(1).clamp(min=1).cpu()
        packed = rnn.pack_padded_sequence(
            self.words(ids), words, batch_first=True, enforce_sorted=False
        )
        y, _ = self.gru(packed)
        y, _ = rnn.pad_packed_sequence(y, padding_value=0.5, total_length=ids.shape[1])
        packed = rnn.pack_padded_sequence(y, counts.cpu() + 1, enforce_sorted=False)
        _, (h, c) = self.lstm(packed)
        return self.fc(torch.cat([*h, *c], 1))


class PadsToTheLongest(PackedRows):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        words = (ids != 0).sum(1).clamp(min=1).cpu()
        packed = rnn.pack_padded_sequence(
            self.words(ids), words, batch_first=True, enforce_sorted=False
        )
        y, _ = rnn.pad_packed_sequence(self.gru(packed)[0], True)  # THE LONGEST
        return y.mean(1)


class Unpools(nn.Module):
    """Maxima return to where they were: SegNet; windows beyond the border."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        y, inner = F.max_pool2d(x, 2, return_indices=True)
        z, outer = F.max_pool2d(y, 3, padding=1, ceil_mode=True, return_indices=True)
        z = F.max_unpool2d(self.fc(z), outer, 3, padding=1, output_size=y.shape)
        return F.max_unpool2d(z + y, inner, 2, output_size=x.shape)


class Neighbours(nn.Module):
    """The nearest points of each row, taken out of the whole batch: DGCNN."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor, step: int = 7) -> torch.Tensor:
        rows, points, _ = x.shape
        places = torch.cdist(x, x).topk(3, largest=False)[1]
        places = places + torch.arange(rows).view(-1, 1, 1) * step
        near = x.reshape(rows * points, -1)[places.view(-1)]  # NEIGHBOURS
        near = near.view(rows, points, 3, -1)
        here = x[:, :, None].expand(-1, -1, 3, -1)
        return self.fc(torch.cat([near - here, here], -1)).amax(2)


class NeighboursOfOthers(Neighbours):
    def forward(self, x: torch.Tensor, step: int = 6) -> torch.Tensor:
        return super().forward(x, step)


class ForwardHooks(nn.Module):
    """Hooks that compute with the model's own weights, one that looks at gradients."""

    def __init__(self, scale: float = 1.0, toggles: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.more = nn.Linear(4, 4, bias=False)
        self.seen: list[torch.Tensor] = []
        self.fc.register_forward_hook(lambda _, given, out: out + self.more(given[0]))
        self.scale, self.toggles = scale, toggles

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.toggles:
            self.fc.requires_grad_(not self.training)  # TOGGLES
        y = self.fc(x)
        if self.training:
            y.register_hook(self.look)  # LOOKS
        return y.tanh()

    def look(self, gradient: torch.Tensor) -> torch.Tensor | None:
        return None if self.scale == 1 else gradient * self.scale


def scales_gradients() -> nn.Module:
    return ForwardHooks(scale=0.5)


def toggles_training() -> nn.Module:
    return ForwardHooks(toggles=True)


class Zoneout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros_like(x)
        for _ in range(2):
            new, old = self.cell(x, h), h  # ZONEOUT
            h = torch.where(torch.rand_like(x) < 0.1, old, new)
            h = h if self.training else 0.1 * old + 0.9 * new
        return h


class RowsAndColumns(nn.Module):
    """Recurrent layers along both axes of a picture, whose other axis joins N."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
        self.along = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, height, width, _ = x.shape
        columns = self.down(x.transpose(1, 2).flatten(0, 1))[0]
        columns = columns.view(-1, width, height, 8).transpose(1, 2)
        rows = self.along(x.flatten(0, 1))[0].view(-1, height, width, 4)
        return torch.cat([columns, rows], -1)
