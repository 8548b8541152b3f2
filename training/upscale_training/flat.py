"""Flat places: how much fine contrast is drawn where a photograph has none, as grain, dots and stains are."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from .degrade import blur
from .spectrum import luma

# Deviation of the Gaussian above which contrast is fine, and side of the squares it is averaged over, output pixels.
COARSE, AROUND = 2.0, 17
# Fine contrast of an original's square that counts as none, in 0..1: a level. A place is flat if all squares around it
# are, so an edge is at least AROUND - 1 pixels away.
FLAT = 1.0 / 255.0
# The same while training: side of the square of source pixels of which the most counts (of five, a strong edge beside a
# place is left out), and the share of a patch that counts as much flat as a price needs.
REACH, LITTLE = 7, 0.02


def speckle(made: Tensor, clean: Tensor) -> tuple[Tensor, Tensor]:
    """Of RGB [n, 3, h, w] in 0..1 where its original is flat: the fine contrast's power in square levels, summed and
    divided by all places, and the share of places that are flat; [n] each. The root of the first over the second is
    the contrast in levels."""
    low = (averaged(fine(clean).square()) < FLAT**2).float()
    flat = -functional.max_pool2d(-low, AROUND, 1, AROUND // 2)
    power = averaged(fine(made).square()) * 255.0**2 * flat
    return power.mean(dim=(1, 2, 3)), flat.mean(dim=(1, 2, 3))


def fine(picture: Tensor) -> Tensor:
    """What a Gaussian of COARSE pixels takes from the brightness of RGB [n, 3, h, w]: [n, 1, h, w]."""
    plane = luma(picture)
    return plane - blur(plane, plane.new_full((len(plane),), COARSE), int(3 * COARSE))


def averaged(power: Tensor) -> Tensor:
    return functional.avg_pool2d(power, AROUND, 1, AROUND // 2, count_include_pad=False)


def calm(clean: Tensor, scale: int) -> Tensor:
    """How much each place of RGB [n, 3, h, w] in 0..1 is flat, with nothing beside it: [n, 1, h, w]."""
    most = functional.max_pool2d(fine_power(clean, scale), REACH, 1, REACH // 2)
    return smooth((-most / FLAT**2).exp(), scale)


def fine_power(clean: Tensor, scale: int) -> Tensor:
    """Of RGB [n, 3, h, w]: mean square of fine contrast around each source pixel, [n, 1, h / scale, w / scale]."""
    around = blur(fine(clean).square(), clean.new_full((len(clean),), COARSE), int(3 * COARSE))
    return functional.avg_pool2d(around, scale)


def smooth(share: Tensor, scale: int) -> Tensor:
    """Of [n, 1, h, w] a mean of three by three, enlarged `scale` times."""
    around = functional.avg_pool2d(share, 3, 1, 1, count_include_pad=False)
    return functional.interpolate(around, scale_factor=scale, mode="bilinear")


def speckle_cost(added: Tensor, still: Tensor) -> Tensor:
    """Mean square of the fine contrast of RGB `added` where a picture is `still`, [n, 1, h, w] in 0..1, in square
    levels; less where next to nothing is."""
    return (fine(added).square() * still).sum() * 255.0**2 / (still.sum() + LITTLE * still.numel())
