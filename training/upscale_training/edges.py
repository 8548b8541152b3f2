"""Edges evened along their own course, as the service does (`upscale_image/src/edges.rs`): what a network draws of a
noisy, soft or staircased edge trembles around its course; averaged along that it lies straight, 3 to 6 % less steep.

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

from .condition import NONE, source_inputs
from .data import as_batch
from .evaluate import Enlarger
from .resize import to_8bit
from .spectrum import luma
from .straight import gradients, places, sampled

# As in edges.rs, which says where the numbers are from. In source pixels: deviations and reaches of the Gaussians
# before the gradients and over their products, the length of a step, and the deviation of a step's weight.
INNER, OUTER, STRIDE, ALONG = (0.7, 2), (1.6, 5), 1.1, 3.5
STEPS = 6
# Gradient that counts half; pixels of softness between which a picture becomes soft; for sharp and for soft ones the
# power of the coherence and how many of an edge's mean slopes a pixel moves by at half.
EDGE, SOFT, POWER, SLOPES = 2.0 / 255.0, (0.2, 0.35), (16.0, 7.0), {2: (0.6, 2.0), 4: (3.0, 15.0)}
# Shares below this are none.
LEAST = 1.0 / 16.0


def evened(made: NDArray[np.uint8], scale: int, softness: float) -> NDArray[np.uint8]:
    """`made`, RGB levels [scale * h, scale * w, 3], with its edges on their course. `softness` of the source as its
    condition says it."""
    picture = as_batch([made])
    return to_8bit((picture + steps(luma(picture), scale, softness))[0].permute(1, 2, 0).numpy())


def laid(enlarge: Enlarger, softness: float) -> Enlarger:
    """What `enlarge` makes, with its edges on their course."""
    return lambda small, scale: evened(enlarge(small, scale), scale, softness)


def steps(plane: Tensor, scale: int, softness: float = NONE) -> Tensor:
    """By how much each pixel of brightness [1, 1, h, w] in 0..1 becomes brighter."""
    sharp, soft = (source_inputs(0.0, pixels)[1] for pixels in SOFT)
    share = min(1.0, max(0.0, (softness - sharp) / (soft - sharp)))
    exponent, slopes = (first + (last - first) * share for first, last in (POWER, SLOPES[scale]))
    cells = course(functional.avg_pool2d(plane, scale), exponent, slopes / scale)
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
