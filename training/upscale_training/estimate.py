"""How noisy and how soft a picture is, judged from the picture alone: numbers that say so, and a small regression.

The service does the same in Rust (`upscale_image/src/estimate`), and a golden file holds the two together. All is
measured on the 8-bit picture, in blocks of 8 x 8 and by quantiles, so that one number stands for the whole picture:
noise is that of its calmest parts, softness that of its sharpest edges.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

# Pictures with a shorter side are too small to judge: nothing is said of them.
SIDE_MIN = 24
# Noise (standard deviation of a channel in levels of 255) and softness (sigma of a Gaussian in pixels), at most.
NOISE_MAX, SOFTNESS_MAX = 25.0, 2.2
BLOCK = 8
# A block with more pixels than this share at the ends of the range is clipped: its noise cannot be seen.
CLIPPED_MAX = 0.2
# The share of blocks with the least coarse contrast: what contrast they have left is mostly noise.
CALM_SHARE = 0.15
# Edges are the steps over four pixels that are greater than all but this share.
EDGE_SHARE = 0.03
# Of larger pictures every so many rows and columns are taken, so that as many pixels' steps are looked at.
STEP_PIXELS_MAX = 1 << 16
FLOOR = 0.05
# What reads as noise may be texture where it is alike in all colours, as light and shade are and a sensor's noise is
# not, and fades towards the finest detail, as white noise does not: squares in the calmest parts, tint of the finest
# luma and the finest luma of the straight bands at most. Of 39 camera pictures a cloth, leaves and bark read 9 to 13
# levels; these marks find all three.
TEXTURE_TINT_MAX, TEXTURE_FINE_MAX, TEXTURE_NOISE_MIN = 0.1, 0.19, 2.0
# Where the means over the calmest blocks stand among the features: finest, straight, two of pairs, tint.
CALM_AT = 18
# Beside a steep edge: the nearer window of three pixels holds what overshoots, the farther one what the edge leads to,
# so many pixels from its middle. A thin line overshoots on one side by most of its step; sharpening on both, by less.
REACH, OVERSHOOT_MAX = 7, 0.5
OVERSHOOTS = 7
HIDDEN, SHARPENED_HIDDEN = (128, 64), (192, 64)
FORMAT = "upscale-estimate-2"


def ascending(values: Tensor) -> Tensor:
    """Sorted along the last axis; NumPy's sort takes a fifteenth of PyTorch's time on a CPU."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.sort(values.numpy(), axis=-1))
    return values.sort(dim=-1).values


def at(sorted_values: Tensor, counts: Tensor, share: float) -> Tensor:
    """The value at `share` of the first `counts` [n] of rows [n, m], by nearest rank; [n]."""
    index = (share * (counts - 1).clamp(min=0).double() + 0.5).floor().long()
    return sorted_values.gather(1, index[:, None])[:, 0]


def haar(plane: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Means, horizontal, vertical, diagonal bands of [n, h, w] with even sides; the bands keep white noise's size."""
    a, b, c, d = plane[:, ::2, ::2], plane[:, ::2, 1::2], plane[:, 1::2, ::2], plane[:, 1::2, 1::2]
    return (a + b + c + d) * 0.25, (a - b + c - d) * 0.5, (a + b - c - d) * 0.5, (a - b - c + d) * 0.5


def by_block(plane: Tensor, side: int) -> Tensor:
    """[n, h, w] to the means of its blocks of `side`, [n, blocks]."""
    return functional.avg_pool2d(plane[:, None], side)[:, 0].flatten(1)


def log(value: Tensor) -> Tensor:
    return (value + FLOOR).log2()


def features(picture: Tensor) -> Tensor:
    """[n, 3, h, w] in 0..1 to [n, FEATURES]; sides of at least SIDE_MIN."""
    red, green, blue = (picture.clamp(0.0, 1.0) * 255.0 + 0.5).floor().unbind(1)
    luma = (77.0 * red + 150.0 * green + 29.0 * blue) / 256.0
    h, w = (length // BLOCK * BLOCK for length in luma.shape[1:])
    colour = ((red - green)[:, :h, :w], (blue - green)[:, :h, :w])
    return torch.cat([grain_features(luma[:, :h, :w], colour), edge_features(luma), overshoot_features(luma)], dim=1)


def grain_features(luma: Tensor, colour: tuple[Tensor, Tensor]) -> Tensor:
    """What blocks of 8 x 8 say: contrast between neighbours, between pairs, in colour; quantiles over the blocks."""
    means, across, down, fine = haar(luma)
    means2, across2, down2, coarse = haar(means)
    _, across3, down3, _ = haar(means2)
    tint = sum(haar(plane)[3].square() for plane in colour) * 0.5
    # Halved amplitudes of a level's means are doubled, so that white noise is alike in all.
    e1, g1 = by_block(fine.square(), 4), by_block((across.square() + down.square()) * 0.5, 4)
    e2, g2 = by_block(coarse.square() * 4.0, 2), by_block((across2.square() + down2.square()) * 2.0, 2)
    g3 = by_block((across3.square() + down3.square()) * 8.0, 1)
    uv = by_block(tint, 4)
    clipped = by_block(((luma <= 1.0) | (luma >= 254.0)).float(), BLOCK) > CLIPPED_MAX
    flat = (e1 + g1 + e2 + g2) == 0.0
    useful = ~clipped & ~flat
    # Fewer than four blocks say nothing by themselves: then all are taken.
    useful = useful | (useful.sum(1) < 4)[:, None]
    counts = useful.sum(1)
    found = [flat.float().mean(1), clipped.float().mean(1)]
    shares = (
        (e1, (0.05, 0.15, 0.3, 0.5, 0.8)),
        (g1, (0.05, 0.3, 0.6)),
        (e2, (0.05, 0.3, 0.6)),
        (g2, (0.05, 0.3)),
        (uv, (0.05, 0.3, 0.5)),
    )
    for energy, places in shares:
        order = ascending(torch.where(useful, energy, torch.inf))
        found += [log(at(order, counts, place).sqrt()) for place in places]
    coarsely = torch.where(useful, g2, torch.inf)
    limit = at(ascending(coarsely), counts, CALM_SHARE)
    calm = (coarsely <= limit[:, None]).float()
    found += [log(((energy * calm).sum(1) / calm.sum(1)).sqrt()) for energy in (e1, g1, e2, g2, uv)]
    found += [log(energy.mean(1).sqrt()) for energy in (e1, g1, e2, g2, g3)]
    return torch.stack(found, dim=1)


def edge_features(luma: Tensor) -> Tensor:
    """How steep the steepest places are, over one, two and four pixels, and which part of a step one pixel takes."""
    rows = (luma[:, :-2] + 2.0 * luma[:, 1:-1] + luma[:, 2:]) * 0.25
    soft = (rows[:, :, :-2] + 2.0 * rows[:, :, 1:-1] + rows[:, :, 2:]) * 0.25
    inner = luma[:, 1:-1, 1:-1]
    every = -(-luma.shape[1] * luma.shape[2] // STEP_PIXELS_MAX)

    def both(plane: Tensor, of_rows: Callable[[Tensor], Tensor]) -> Tensor:
        """What `of_rows` finds along rows and, turned, along columns; [n, everything]."""
        turned = plane.transpose(1, 2)
        return torch.cat([of_rows(one[:, ::every]).flatten(1) for one in (plane, turned)], dim=1)

    found = []
    steps = {k: both(soft, lambda p, k=k: (p[:, :, k:] - p[:, :, :-k]).abs()) for k in (1, 2, 4)}
    for k in (1, 2, 4):
        found += quantiles(steps[k], (0.9, 0.97, 0.99, 0.998))
    found += quantiles(both(inner, lambda p: (p[:, :, 1:] - p[:, :, :-1]).abs()), (0.97, 0.998))
    bends = both(soft, lambda p: (p[:, :, 2:] - 2.0 * p[:, :, 1:-1] + p[:, :, :-2]).abs())
    found += quantiles(bends, (0.97, 0.99, 0.998))
    limit = ranked(steps[4], (1.0 - EDGE_SHARE,))[0]
    steep = steps[4] >= limit.clamp(min=1.0)[:, None]
    for plane in (soft, inner):
        share = torch.where(steep, both(plane, steepest) / steps[4].clamp(min=1.0), torch.inf)
        order, counts = ascending(share), steep.sum(1)
        # A picture without an edge is as sharp as any.
        found += [torch.where(counts > 0, at(order, counts, place), 1.0).clamp(0.0, 2.0) for place in (0.3, 0.6, 0.9)]
    return torch.stack(found, dim=1)


def steepest(plane: Tensor) -> Tensor:
    """The greatest step between neighbours within each span of four."""
    step = (plane[:, :, 1:] - plane[:, :, :-1]).abs()
    return torch.maximum(
        torch.maximum(step[:, :, :-3], step[:, :, 1:-2]), torch.maximum(step[:, :, 2:-1], step[:, :, 3:])
    )


def quantiles(values: Tensor, shares: tuple[float, ...]) -> list[Tensor]:
    return [log(value) for value in ranked(values, shares)]


def ranked(values: Tensor, shares: tuple[float, ...]) -> list[Tensor]:
    """The values [n, m] at these shares of each row, each [n]."""
    order, counts = ascending(values), torch.full((len(values),), values.shape[1], device=values.device)
    return [at(order, counts, share) for share in shares]


def overshoot_features(luma: Tensor) -> Tensor:
    """By how much the steepest edges overshoot, as a share of their step: what sharpening leaves beside them.

    Quantiles of the lesser side where neither side overshoots by half a step, quantiles of both sides' mean, and the
    share of such edges; [n, OVERSHOOTS], nothing where a picture has no edge.
    """
    across = (luma[:, 1:-1, :-2] + 2.0 * luma[:, 1:-1, 1:-1] + luma[:, 1:-1, 2:]) * 0.25
    down = (luma[:, :-2, 1:-1] + 2.0 * luma[:, 1:-1, 1:-1] + luma[:, 2:, 1:-1]) * 0.25
    every = -(-luma.shape[1] * luma.shape[2] // STEP_PIXELS_MAX)
    ways = zip(*(sides(plane[:, ::every]) for plane in (down, across.transpose(1, 2))), strict=True)
    one, other, step = (torch.cat([way.flatten(1) for way in both], dim=1) for both in ways)
    limit = ranked(step, (1.0 - EDGE_SHARE,))[0]
    steep = step >= limit.clamp(min=1.0)[:, None]
    edges = steep & (torch.maximum(one, other) < OVERSHOOT_MAX)
    found = []
    for value, among, places in (
        (torch.minimum(one, other), edges, (0.25, 0.5, 0.75)),
        ((one + other) * 0.5, steep, (0.1, 0.25, 0.5)),
    ):
        order, counts = ascending(torch.where(among, value, torch.inf)), among.sum(1)
        found += [torch.where(counts > 0, at(order, counts, place), 0.0).clamp(-1.0, 1.0) for place in places]
    return torch.stack([*found, edges.sum(1) / steep.sum(1).clamp(min=1)], dim=1)


def sides(plane: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Along the rows of [n, h, w], at every pixel with REACH others on both sides: by which share of the step over four
    pixels the picture overshoots after it and before it, and that step; [n, h, w - 2 REACH] each."""
    a, b, c = plane[:, :, :-2], plane[:, :, 1:-1], plane[:, :, 2:]
    most, least, mean = torch.maximum(torch.maximum(a, b), c), torch.minimum(torch.minimum(a, b), c), (a + b + c) / 3.0
    step = plane[:, :, REACH + 2 : 2 - REACH] - plane[:, :, REACH - 2 : -REACH - 2]
    (most_left, most_right), (least_left, least_right) = ((one[:, :, 4:-8], one[:, :, 8:-4]) for one in (most, least))
    left, right = mean[:, :, :-12], mean[:, :, 12:]
    after = torch.where(step > 0.0, most_right - right, right - least_right)
    before = torch.where(step > 0.0, left - least_left, most_left - left)
    size = step.abs()
    return after / size.clamp(min=1.0), before / size.clamp(min=1.0), size


def chain(*sizes: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(one, other) for one, other in pairwise(sizes))


def through(layers: nn.ModuleList, h: Tensor) -> Tensor:
    for layer in layers[:-1]:
        h = functional.relu(layer(h))
    return layers[-1](h)


class Estimator(nn.Module):
    """Features to noise and softness, by two hidden layers; less softness where what overshoots says so.

    `layers` know nothing of overshoots: what they say of pictures that no camera sharpened is kept.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("deviation", torch.ones(inputs))
        self.layers = chain(inputs - OVERSHOOTS, *HIDDEN, 2)
        self.sharpened = chain(inputs, *SHARPENED_HIDDEN, 1)

    def forward(self, found: Tensor) -> Tensor:
        """[n, features] to [n, 2], each in units of its `number` (condition.py) less 0.2, over 0.8; not clamped."""
        less = functional.relu(self.overstated(found))
        return self.unsharpened(found) - torch.cat([torch.zeros_like(less), less], dim=1)

    def unsharpened(self, found: Tensor) -> Tensor:
        """The same as if no camera sharpened, [n, 2]."""
        return through(self.layers, self.scaled(found)[:, :-OVERSHOOTS])

    def overstated(self, found: Tensor) -> Tensor:
        """By how much that softness is too great, [n, 1]; below nothing it is not."""
        return through(self.sharpened, self.scaled(found))

    def scaled(self, found: Tensor) -> Tensor:
        return (found - self.mean) / self.deviation

    @torch.no_grad()
    def estimate(self, picture: Tensor) -> Tensor:
        """[n, 3, h, w] in 0..1 to [n, 2]: noise in levels of 255, softness in pixels."""
        return levels(self(features(picture)))


def may_be_texture(found: Tensor, noise: Tensor) -> Tensor:
    """Of features [n, FEATURES] and the noise [n] that they read as: [n] of bool."""
    finest, straight, _, _, tint = ((found[:, CALM_AT : CALM_AT + 5].exp2() - FLOOR) ** 2).unbind(1)
    alike, fading = tint < TEXTURE_TINT_MAX * finest, finest < TEXTURE_FINE_MAX * straight
    return alike & fading & (noise >= TEXTURE_NOISE_MIN)


def shares(noise: Tensor, softness: Tensor) -> Tensor:
    """What the regression is asked for: noise by its logarithm, softness as it is; [n, 2] in 0..1."""
    return torch.stack([(1.0 + noise).log2() / np.log2(1.0 + NOISE_MAX), softness / SOFTNESS_MAX], dim=1)


def levels(found: Tensor) -> Tensor:
    """`shares` backwards, clamped to what can be meant."""
    noise = (found[:, 0].clamp(0.0, 1.0) * np.log2(1.0 + NOISE_MAX)).exp2() - 1.0
    return torch.stack([noise, found[:, 1].clamp(0.0, 1.0) * SOFTNESS_MAX], dim=1)


def save_estimator(estimator: Estimator, path: Path) -> None:
    tensors = {name: value.detach().float().contiguous() for name, value in estimator.state_dict().items()}
    save_file(tensors, path, {"format": FORMAT})


def load_estimator(path: Path) -> Estimator:
    with safe_open(path, framework="pt") as file:
        if (file.metadata() or {}).get("format") != FORMAT:
            raise ValueError(f"{path} is no estimator of format {FORMAT}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    estimator = Estimator(len(tensors["mean"]))
    estimator.load_state_dict(tensors)
    return estimator.requires_grad_(False)
