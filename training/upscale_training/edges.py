"""What the service does to a network's picture in the finer looks: it sharpens it (`upscale_image/src/sharpen.rs`) and
lays its edges on their own course (`upscale_image/src/edges.rs`). What a network draws of a noisy, soft or staircased
edge trembles around its course; averaged along that it lies straight, 3 to 6 % less steep.

Where edges run is read from the result shrunk to the source's size, whose cells are the source's pixels. straight.py
measures by the original instead; nothing here sees one.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from .condition import NONE, SOFT, source_inputs
from .data import as_batch
from .evaluate import Enlarger
from .resize import to_8bit
from .spectrum import luma
from .straight import gradients, places, sampled

# As in edges.rs, which says where the numbers are from. In source pixels: deviations and reaches of the Gaussians
# before the gradients and over their products, the length of a step, and the deviation of a step's weight.
INNER, OUTER, STRIDE, ALONG = (0.7, 2), (1.6, 5), 1.3, 3.5
STEPS = 5
# Gradient that counts half; for sharp and for soft pictures, by scale, the power of the coherence and how many of an
# edge's mean slopes a pixel moves by at half.
EDGE, POWER, SLOPES = 2.0 / 255.0, {2: (16.0, 7.0), 4: (16.0, 3.5)}, {2: (0.6, 2.0), 4: (3.0, 30.0)}
# Shares below this are none.
LEAST = 1.0 / 16.0
# As in sharpen.rs: deviation and reach of the Gaussian in output pixels, and how many times what it takes is added in
# each look, in sharp and in soft pictures, by scale. `Look::sharpening` of upscale_core has the same.
FINE, REACH = (1.0, 3), 2
AMOUNTS = {
    2: {"natural": (0.0, 0.0), "crisp": (0.0, 0.0)},
    4: {"natural": (0.1, 0.45), "crisp": (0.2, 0.9)},
}


def finished(enlarge: Enlarger, look: str, softness: float) -> Enlarger:
    """What `enlarge` makes as that look has it, sharper and with its edges on their course. `softness` of the source as
    its condition says it."""
    return lambda small, scale: evened(enlarge(small, scale), scale, softness, amount(look, scale, softness))


def evened(made: NDArray[np.uint8], scale: int, softness: float, sharper: float = 0.0) -> NDArray[np.uint8]:
    """`made`, RGB levels [scale * h, scale * w, 3], sharpened by so much and then with its edges on their course."""
    picture = as_batch([made])
    plane = luma(picture)
    sharp = sharpened(plane, sharper)
    step = sharp - plane + steps(sharp, scale, softness, functional.avg_pool2d(plane, scale))
    return to_8bit((picture + step)[0].permute(1, 2, 0).numpy())


def amount(look: str, scale: int, softness: float) -> float:
    """By how much that look sharpens a picture of that softness."""
    return between(AMOUNTS[scale][look], softness)


def sharpened(plane: Tensor, sharper: float) -> Tensor:
    """Brightness [1, 1, h, w] with so much more of what is finer than FINE, within what it is around each pixel."""
    if not sharper:
        return plane
    reached = functional.pad(plane, [REACH] * 4, mode="replicate")
    highest, lowest = (sign * functional.max_pool2d(sign * reached, 2 * REACH + 1, 1) for sign in (1.0, -1.0))
    sharp = plane + sharper * (plane - blurred(plane, *FINE))
    return torch.minimum(torch.maximum(sharp, lowest), highest)


def between(ends: tuple[float, float], softness: float) -> float:
    """The first of the two in sharp pictures, the second in soft ones."""
    sharp, soft, *_ = (source_inputs(0.0, pixels)[1] for pixels in SOFT)
    first, last = ends
    return first + (last - first) * min(1.0, max(0.0, (softness - sharp) / (soft - sharp)))


def steps(plane: Tensor, scale: int, softness: float = NONE, small: Tensor | None = None) -> Tensor:
    """By how much each pixel of brightness [1, 1, h, w] in 0..1 becomes brighter; `small` says where edges run, its
    means otherwise."""
    small = functional.avg_pool2d(plane, scale) if small is None else small
    cells = course(small, between(POWER[scale], softness), between(SLOPES[scale], softness) / scale)
    share, limit = (drawn_out(cells[:, index : index + 1], scale) for index in (2, 3))
    step = (average(plane, cells[:, :3], scale) - plane) * torch.where(share < LEAST, 0.0, share)
    return step * limit / (limit + step.square() + 1e-9)


def course(small: Tensor, exponent: float, slopes: float) -> Tensor:
    """Of brightness [1, 1, h, w] each cell's direction along the edge, x and y of length 1, how far one edge alone is
    there, 0..1, and the square of how far a pixel may move, by so many slopes: [1, 4, h, w]. Structure tensor (Bigun,
    Granlund 1987); `exponent` is that of its coherence."""
    across, down = gradients(blurred(small, *INNER))
    xx, yy, xy = (blurred(one, *OUTER) for one in (across.square(), down.square(), across * down))
    turned, other, power = xx - yy, 2.0 * xy, xx + yy
    size = (turned.square() + other.square()).sqrt() + 1e-12
    cosine = ((1.0 + turned / size) * 0.5).clamp(min=0.0).sqrt()
    sine = ((1.0 - turned / size) * 0.5).clamp(min=0.0).sqrt() * torch.where(other < 0.0, -1.0, 1.0)
    share = (size / (power + 1e-9)).clamp(max=1.0) ** exponent * power / (power + EDGE**2)
    return torch.cat([-sine, cosine, share, power * slopes**2], dim=1)


def average(plane: Tensor, cells: Tensor, scale: int) -> Tensor:
    """`plane` averaged along curves that follow the cells' direction both ways (line integral convolution, Cabral and
    Leedom 1993), as far as there is an edge to both sides; all pixels of a cell go one way."""
    height, width = cells.shape[2:]
    pixels, start = places(plane), places(cells)[0]
    size = plane.new_tensor([width, height]).view(2, 1, 1)
    walks = [(start, cells[0, :2]), (start, -cells[0, :2])]
    total, weights, least = plane.clone(), torch.ones_like(plane), torch.ones_like(cells[0, 0])
    for step in range(1, STEPS + 1):
        for index, (here, heading) in enumerate(walks):
            here = here + STRIDE * heading
            inside = ((here >= -0.5) & (here + 0.5 < size)).all(dim=0)
            x, y = (here + 0.5).floor().long()
            there = cells[0, :3, y.clamp(0, height - 1), x.clamp(0, width - 1)]
            least = torch.minimum(least, torch.where(inside, there[2], 0.0))
            walks[index] = here, there[:2] * torch.where((there[:2] * heading).sum(dim=0) < 0.0, -1.0, 1.0)
        weight = repeated(math.exp(-0.5 * (step * STRIDE / ALONG) ** 2) * torch.where(least < LEAST, 0.0, least), scale)
        beside = (repeated(here - start, scale) * scale for here, _ in walks)
        total = total + weight * sum(sampled(plane, pixels + one) for one in beside)
        weights = weights + 2.0 * weight
    return total / weights


def repeated(cells: Tensor, scale: int) -> Tensor:
    """What is of a cell, for each of its pixels."""
    return cells.repeat_interleave(scale, dim=-1).repeat_interleave(scale, dim=-2)


def drawn_out(cells: Tensor, scale: int) -> Tensor:
    return functional.interpolate(cells, scale_factor=scale, mode="bilinear", align_corners=False)


def blurred(plane: Tensor, sigma: float, reach: int) -> Tensor:
    taps = (-0.5 * (torch.arange(-reach, reach + 1.0) / sigma).square()).exp()
    taps = taps / taps.sum()
    plane = functional.pad(plane, [reach] * 4, mode="replicate")
    return functional.conv2d(functional.conv2d(plane, taps.view(1, 1, 1, -1)), taps.view(1, 1, -1, 1))
