"""What torch scripts call (emit/helpers.h)."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn


class Weight(nn.Module):
    """A parameter by itself."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape))


class MeanOverDevices(torch.autograd.Function):
    """The gradients of all devices' losses come back."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        x = x / dist.get_world_size()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return MeanOverDevices.forward(ctx, grad)


class SyncedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Trains with the statistics of all devices' rows; nn.SyncBatchNorm needs GPUs."""

    def forward(self, x: Tensor) -> Tensor:
        axes, shape = [0, *range(2, x.dim())], [-1] + [1] * (x.dim() - 2)
        mean = MeanOverDevices.apply(x.mean(axes))
        x = x - mean.view(shape)
        var = MeanOverDevices.apply(x.square().mean(axes))
        count = dist.get_world_size() * x.numel() / x.shape[1]
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * (count / (count - 1)), self.momentum)
        scale = self.weight * torch.rsqrt(var + self.eps)
        return x * scale.view(shape) + self.bias.view(shape)


def avg_pool1d_uneven(x: Tensor, kernel, stride, pad: tuple[int, ...]) -> Tensor:
    """Mean over the part of each window that lies inside the picture.

    `pad` is before, after of each axis from the last; F.avg_pool1d pads evenly only.
    """
    inside = F.avg_pool1d(F.pad(torch.ones_like(x[:1, :1]), pad), kernel, stride)
    return F.avg_pool1d(F.pad(x, pad), kernel, stride) / inside


def avg_pool2d_uneven(x: Tensor, kernel, stride, pad: tuple[int, ...]) -> Tensor:
    """Mean over the part of each window that lies inside the picture.

    `pad` is before, after of each axis from the last; F.avg_pool2d pads evenly only.
    """
    inside = F.avg_pool2d(F.pad(torch.ones_like(x[:1, :1]), pad), kernel, stride)
    return F.avg_pool2d(F.pad(x, pad), kernel, stride) / inside


def avg_pool3d_uneven(x: Tensor, kernel, stride, pad: tuple[int, ...]) -> Tensor:
    """Mean over the part of each window that lies inside the picture.

    `pad` is before, after of each axis from the last; F.avg_pool3d pads evenly only.
    """
    inside = F.avg_pool3d(F.pad(torch.ones_like(x[:1, :1]), pad), kernel, stride)
    return F.avg_pool3d(F.pad(x, pad), kernel, stride) / inside


def padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the last token of each row: N, 1, 1, keys."""
    return torch.arange(keys, device=last.device) <= last[:, None, None, None]


def causal_padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the query and to the last token of each row: N, 1, keys, keys."""
    places = torch.arange(keys, device=last.device)
    return (places <= places[:, None]) & (places <= last[:, None, None, None])


def window_mask(keys: int, window: int, device: torch.device) -> Tensor:
    """True for the last keys up to the query, as many as the window has: keys, keys."""
    ones = torch.ones(keys, keys, dtype=torch.bool, device=device)
    return ones.tril().triu(1 - window)


def cache_mask(positions: Tensor, keys: int, window: int = 0) -> Tensor:
    """True for the last keys up to each position, as many as the window has: L, keys."""
    places, positions = torch.arange(keys, device=positions.device), positions[:, None]
    seen = places <= positions
    return seen & (places > positions - window) if window else seen


class GrowingCache(nn.Module):
    """Keys or values of the places so far."""

    def __init__(self, empty: Tensor) -> None:
        super().__init__()
        self.register_buffer("held", empty, persistent=False)

    def clear(self) -> None:
        self.held = self.held[:, :0]

    def forward(self, new: Tensor) -> Tensor:
        self.held = torch.cat((self.held, new.to(self.held.dtype)), dim=1)
        return self.held


def growing_attention(q, k, v, keys, values, mask: Tensor) -> Tensor:
    """k and v join the caches; then queries see what the mask of all places says."""
    q, k, v = (heads.transpose(1, 2) for heads in (q, keys(k), values(v)))
    mask = mask[:, : k.shape[2]]
    x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return x.transpose(1, 2)


def cached_attention(q, k, v, keys, values, positions, mask: Tensor) -> Tensor:
    """k and v join the caches at their positions; then queries see what the mask says."""
    keys.index_copy_(1, positions, k)
    values.index_copy_(1, positions, v)
    q, k, v = (heads.transpose(1, 2) for heads in (q, keys, values))
    x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return x.transpose(1, 2)


# Autocast leaves the caches as they are: keys and values are rounded to their type.
def cached_attention_mixed(q, k, v, keys, values, positions, mask: Tensor) -> Tensor:
    """k and v join the caches at their positions; then queries see what the mask says."""
    keys.index_copy_(1, positions, k.to(keys.dtype))
    values.index_copy_(1, positions, v.to(values.dtype))
    q, k, v = (heads.transpose(1, 2) for heads in (q, keys, values))
    x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return x.transpose(1, 2)


def scatter_add(values: Tensor, places: Tensor, axis: int, size: int) -> Tensor:
    """Adds up what goes to the same place along an axis."""
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 :])
    places = places.expand_as(values)
    return values.new_zeros(shape).scatter_add(axis, places, values)


def lstm(x: Tensor, weight_ih: Tensor, weight_hh: Tensor, *bias: Tensor) -> Tensor:
    """The whole sequence from a zero state; the gates are i, f, g, o."""
    state = x.new_zeros(1, len(x), weight_hh.shape[1])
    weights = [weight_ih, weight_hh, *bias]
    weights += [torch.zeros_like(b) for b in bias]  # torch has two biases
    return torch.lstm(
        x, (state, state), weights, len(bias) > 0, 1, 0.0, True, False, True
    )[0]


def gru(x: Tensor, weight_ih: Tensor, weight_hh: Tensor, *bias: Tensor) -> Tensor:
    """The whole sequence from a zero state; the gates are r, z, n."""
    state = x.new_zeros(1, len(x), weight_hh.shape[1])
    weights = [weight_ih, weight_hh, *bias]
    return torch.gru(x, state, weights, len(bias) > 0, 1, 0.0, True, False, True)[0]


def resize(x: Tensor, size: tuple[int, ...], mode: str, coordinates: str) -> Tensor:
    """Along each axis in turn; F.interpolate reads other places."""
    shift = 1 if coordinates == "half_pixel" else 0
    for axis, new in enumerate(size, 2):
        old = x.shape[axis]
        places = (2 * torch.arange(new, device=x.device) + shift) * old
        low = places // (2 * new)
        lower = x.index_select(axis, low)
        if mode == "nearest":
            x = lower
            continue
        upper = x.index_select(axis, (low + 1).clamp(max=old - 1))
        share = (places % (2 * new)).to(x.dtype) / (2 * new)
        x = lower + (upper - lower) * share.view(-1, *[1] * (x.ndim - axis - 1))
    return x


def softplus(x):
    """Exact for all x, where F.softplus is x above a threshold."""
    return torch.logaddexp(x, torch.zeros_like(x))
