"""Invented faces: portraits turned, stretched, bent, mirrored and lit otherwise.

Portraits are few (339), and a scene at 4x takes 224 of their 225 pixels. Seen as they are, they were learnt by heart:
behind JPEG 30 a network was 1.17 dB better than the restoring one on those it was trained on and .76 on the others, one
of three times the weights 1.75 and .62 (LABORATORY.md).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .mixture import Draw
from .spectrum import luma

# Pixels of a portrait to one of the patch, in powers of two: never enlarged, for originals are to stay sharp.
SHRUNK = (0.0, 0.6)
# Deviations: degrees; the logarithm of how much one side is stretched; how far each of BENT x BENT places is moved, in
# sides of the patch.
TURNED, STRETCHED, MOVED, BENT = 12.0, 0.05, 0.012, 5
# Deviations of the logarithms: exponent of all colours and of each, distance of a colour from grey.
GAMMA, TINT, SATURATION = 0.2, 0.04, 0.12


def invented(pictures: list[Tensor], middles: np.ndarray, side: int, jitter: float, draw: Draw) -> Tensor:
    """[n, 3, side, side] of faces like those of `pictures`, each [1, 3, h, w], RGB in 0..1; computed where they lie.

    `middles` [n, 2] (x, y) of the faces, in pixels, come to lie within `jitter` sides of the patch's own, further off
    where a picture would end otherwise. Beyond its edges a picture is mirrored.
    """
    count, device = len(pictures), pictures[0].device
    sizes = np.array([one.shape[:1:-1] for one in pictures])
    steps = 2.0 ** draw.uniform(*SHRUNK, (count, 1))
    half = np.minimum(0.5 * side * steps, sizes / 2)
    centres = np.clip(middles + draw.uniform(-jitter, jitter, (count, 2)) * side * steps, half, sizes - half)
    # grid_sample counts from -1 at the left edge of the first pixel to 1 at the right edge of the last.
    ways, starts = axes(count, draw) * (2.0 * steps / sizes)[:, :, None], (2.0 * centres + 1.0) / sizes - 1.0
    ways, starts = (torch.from_numpy(one).float().to(device) for one in (ways, starts))
    grids = torch.einsum("nchw,nac->nhwa", bent(count, side, draw, device), ways) + starts[:, None, None]
    found = [
        functional.grid_sample(picture, grid[None], "bicubic", "reflection", align_corners=False)
        for picture, grid in zip(pictures, grids, strict=True)
    ]
    return lit(torch.cat(found).clamp(0.0, 1.0), draw)


def bent(count: int, side: int, draw: Draw, device: torch.device) -> Tensor:
    """[n, 2, side, side]: x and y of each pixel of a patch, counted from its middle, moved smoothly."""
    moved = torch.from_numpy(draw.normal(0.0, MOVED * side, (count, 2, BENT, BENT))).float().to(device)
    smooth = functional.interpolate(moved, (side, side), mode="bicubic", align_corners=True)
    places = torch.arange(side, device=device) - 0.5 * (side - 1)
    return smooth + torch.stack(torch.meshgrid(places, places, indexing="xy"))


def axes(count: int, draw: Draw) -> np.ndarray:
    """[n, 2, 2]: the portrait's x and y (rows) for a step across and one down in the patch (columns)."""
    turn, stretch = np.radians(draw.normal(0.0, TURNED, count)), np.exp(draw.normal(0.0, STRETCHED, count))
    across, down = (1.0 - 2.0 * draw.integers(2, size=count)) * stretch, 1.0 / stretch
    rows = [[across * np.cos(turn), -down * np.sin(turn)], [across * np.sin(turn), down * np.cos(turn)]]
    return np.array(rows).transpose(2, 0, 1)


def lit(faces: Tensor, draw: Draw) -> Tensor:
    """RGB [n, 3, h, w] in 0..1, each under another light."""
    count = len(faces)
    powers = np.exp(draw.normal(0.0, GAMMA, (count, 1)) + draw.normal(0.0, TINT, (count, 3)))
    colours = np.exp(draw.normal(0.0, SATURATION, (count, 1)))
    powers, colours = (torch.from_numpy(one).float().to(faces.device)[..., None, None] for one in (powers, colours))
    faces = faces**powers
    return torch.lerp(luma(faces), faces, colours).clamp(0.0, 1.0)
