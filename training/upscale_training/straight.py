"""Straight edges: where a picture has them, what it is when it is averaged along them, and how far edges tremble.

A crisp network draws an edge as steep as it can and has to say where it runs: from a noisy or staircased source it says
something else every few source pixels. The same edge averaged along its own course is straight and all but as steep.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from .degrade import blur
from .spectrum import luma

# Of the structure tensor, in output pixels: deviations of the Gaussians before the gradients and over their products.
INNER, OUTER = 1.0, 4.0
# Steps along an edge in both directions, their length in output pixels, and the deviation of their weights in pixels:
# edges tremble over 30 to 60. A stride of 4 would add a weave of that period up.
STEPS, STRIDE, ALONG = 8, 3.3, 14.0
# How far an edge of the original may itself lie from its own course to count half as straight, output pixels, and the
# gradient in 0..1 a pixel that is none.
OWN, NONE = 0.6, 0.004
# Where edges are steep: deviation of the Gaussian over the products, square of the coherence from which on there is one
# straight edge alone, and the share of those that is not looked at.
AROUND, ALONE, GENTLE = 2.0, 0.5, 0.9


def straightened(picture: Tensor, clean: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`picture` [n, c, h, w] and the brightness of its original [n, 3, h, w], both averaged along the original's edges;
    and where those run straight or in an even curve, which is where the second is the original still: [n, 1, h, w] in
    0..1."""
    plane = luma(clean)
    even, own = averaged(torch.cat([picture, plane], dim=1), course(plane)).split([picture.shape[1], 1], dim=1)
    slope, moved = blurred(steepness(own), OUTER), blurred((plane - own).square(), OUTER)
    return even, own, slope / (slope + moved / OWN**2 + NONE**2)


def course(plane: Tensor) -> Tensor:
    """Of luma planes [n, 1, h, w] in 0..1: the direction along the edges [n, 2, h, w], x and y of length 1, by the
    structure tensor (Bigun and Granlund 1987)."""
    across, down = gradients(blurred(plane, INNER))
    xx, yy, xy = (blurred(product, OUTER) for product in (across.square(), down.square(), across * down))
    angle = torch.atan2(2.0 * xy, xx - yy) * 0.5
    return torch.cat([-angle.sin(), angle.cos()], dim=1)


def steepness(plane: Tensor) -> Tensor:
    """Square of the gradient."""
    across, down = gradients(plane)
    return across.square() + down.square()


def gradients(plane: Tensor) -> tuple[Tensor, Tensor]:
    padded = functional.pad(plane, [1] * 4, mode="replicate")
    across = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]
    return across * 0.5, (padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]) * 0.5


def blurred(plane: Tensor, sigma: float) -> Tensor:
    return blur(plane, plane.new_full((len(plane),), sigma), int(3 * sigma))


def averaged(picture: Tensor, direction: Tensor) -> Tensor:
    """[n, c, h, w] averaged along curves that follow `direction` both ways from each pixel (line integral convolution,
    Cabral and Leedom 1993)."""
    total, weights = picture.clone(), 1.0
    for sign in (1.0, -1.0):
        here, heading = places(picture), direction * sign
        for step in range(1, STEPS + 1):
            here = here + STRIDE * heading
            weight = math.exp(-0.5 * (step * STRIDE / ALONG) ** 2)
            total, weights = total + weight * sampled(picture, here), weights + weight
            there = sampled(direction, here, "nearest")
            heading = there * torch.where((there * heading).sum(dim=1, keepdim=True) < 0.0, -1.0, 1.0)
    return total / weights


def places(picture: Tensor) -> Tensor:
    """Of each pixel of [n, c, h, w]: x and y, [1, 2, h, w]."""
    height, width = picture.shape[2:]
    return torch.stack(torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy"))[None].to(picture)


def sampled(picture: Tensor, place: Tensor, mode: str = "bilinear") -> Tensor:
    """`picture` at the places [n, 2, h, w], x and y in pixels; beyond the border the edge."""
    height, width = picture.shape[2:]
    size = place.new_tensor([width - 1, height - 1]).clamp(min=1.0).view(1, 2, 1, 1)
    grid = (place / size * 2.0 - 1.0).permute(0, 2, 3, 1)
    return functional.grid_sample(picture, grid, mode=mode, padding_mode="border", align_corners=True)


def trembling(made: Tensor, clean: Tensor) -> tuple[Tensor, Tensor]:
    """Of RGB [n, 3, h, w] in 0..1 on the straight edges of its original: the mean square of what lies beside an edge's
    own course, and of the edge's slope; [n] each. The root of the first over the second is how far edges tremble, in
    output pixels."""
    plane = luma(made)
    even, _, share = straightened(plane, clean)
    # To the fourth: what is half as straight is mostly texture. With the square, originals tremble by .34 and .38.
    both = (share**4 * one for one in ((plane - even).square(), steepness(even)))
    moved, slope = (one.mean(dim=(1, 2, 3)) for one in both)
    return moved, slope


def steep(made: Tensor, clean: Tensor) -> float:
    """How steep the edges of RGB [1, 3, h, w] in 0..1 are, the original's being 1: gradients on the steepest tenth of
    its straight edges, their 90th percentile. 1 where there are none."""
    here, true = (steepness(luma(one)).sqrt()[0, 0] for one in (made, clean))
    across, down = gradients(luma(clean))
    xx, yy, xy = (blurred(product, AROUND)[0, 0] for product in (across.square(), down.square(), across * down))
    straight = (xx - yy).square() + 4.0 * xy.square() > ALONE * (xx + yy).square()
    if not straight.any():
        return 1.0
    steepest = straight & (true >= true[straight].quantile(GENTLE))
    return float(here[steepest].quantile(GENTLE) / true[steepest].quantile(GENTLE))
