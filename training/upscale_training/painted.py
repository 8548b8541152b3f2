"""Crisp layers without a critic: `python -m upscale_training.painted CONFIG --data FOLDER`.

A network can draw only what its source says. Asked for all of an original it answers with the mean of what could be
there: texture becomes a haze, edges become slopes. Here photographs and art are asked for a painted original: texture
below a few levels is gone, edges are steep. What is left the source mostly says. And an error counts by the logarithm
of its square, so that an edge which may run here or there is drawn in one place, and not as the slope between. All else
is taught by the restoring network (apart.py).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .apart import PagesRun
from .edges import sharpened
from .flat import calm
from .mixture import Group
from .scenes import Scenes
from .spectrum import luma
from .train import train_on_scenes

# Of the bilateral filter: how many levels of brightness are texture, its reach and its Gaussian's deviation in pixels.
LEVELS, REACH, NEAR = 6.0 / 255.0, 3, 2.0
# How many times what is finest is added to what that leaves.
STEEPER = 2.0
# Error of brightness from which on more of it hardly counts.
LOST = 8.0 / 255.0
# What the absolute errors of brightness, of colours and of source pixels' means count beside that.
PIXEL, COLOUR, MEAN = 0.3, 0.5, 0.5
# An original's cost below this is as good as none: of one level everywhere.
ALIKE = 0.004


class PaintedRun(PagesRun):
    """Photographs and art are asked for their painted originals, beside what the restoring network makes of them."""

    # Softness as it is read, without a hint of the truth: in a camera's picture it differs from place to place. Files
    # from the web were larger JPEGs before.
    shown = Scenes(clean=0.1, file=0.25, compressed=0.65, passed_on=0.6, surer=0.0)

    def asked(self, output: Tensor, restored: Tensor, group: Group) -> Tensor:
        clean, scale = painted(group.clean), self.recipe.scale
        beside = cost(restored, clean, scale) + ALIKE
        drawn = self.drawn(output, restored, group.clean, calm(group.clean, scale))
        return (cost(output, clean, scale) / beside).mean() + drawn


def cost(made: Tensor, clean: Tensor, scale: int) -> Tensor:
    """[n]: what is wrong with each of RGB [n, 3, h, w] in 0..1."""
    off = made - clean
    plane = luma(off)
    lost = 0.5 * LOST * (plane / LOST).square().log1p() + PIXEL * plane.abs()
    means = MEAN * functional.avg_pool2d(off, scale).abs()
    return sum(one.mean(dim=(1, 2, 3)) for one in (lost, COLOUR * (off - plane).abs(), means))


def painted(clean: Tensor) -> Tensor:
    """RGB [n, 3, h, w] in 0..1 without weak texture and with steep edges; colours move with brightness."""
    plane = luma(clean)
    return (clean + sharpened(without_texture(plane), STEEPER) - plane).clamp(0.0, 1.0)


def without_texture(plane: Tensor) -> Tensor:
    """Brightness [n, 1, h, w], each pixel the mean of those near it that are about as bright: the bilateral filter of
    Tomasi and Manduchi 1998."""
    height, width = plane.shape[2:]
    around = functional.pad(plane, [REACH] * 4, mode="replicate")
    total, weights = torch.zeros_like(plane), torch.zeros_like(plane)
    for down in range(2 * REACH + 1):
        for right in range(2 * REACH + 1):
            other = around[..., down : down + height, right : right + width]
            apart = ((down - REACH) ** 2 + (right - REACH) ** 2) / NEAR**2
            weight = (-0.5 * (((other - plane) / LEVELS).square() + apart)).exp()
            total, weights = total + weight * other, weights + weight
    return total / weights


if __name__ == "__main__":
    train_on_scenes(PaintedRun, __doc__)
