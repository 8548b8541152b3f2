"""The condition input of the networks: `[known, luma, chroma, subsampled]` of the file, then `[noise, softness]`.

known is 1 where the next three are trusted, else all four are 0; luma and chroma are `log2(1 + mean of the table) / 8`,
clamped to 0..1, and 0 for files without loss; subsampled is 1 at 4:2:0, 0.5 at 4:2:2, else 0. noise and softness are 0
where nothing is known of them, else 0.2 for none up to 1 (estimate.py judges them). Networks of four inputs, those
that shipped first, know the file alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .estimate import Estimator, features, levels, may_be_texture, shares

# Numbers of the file alone, and of the file and the picture; the width of the hidden layer for each.
FILE_INPUTS, SOURCE_INPUTS = 4, 6
HIDDEN = {FILE_INPUTS: 32, SOURCE_INPUTS: 48}
CLEAN = (1.0, 0.0, 0.0, 0.0)
UNKNOWN = (0.0, 0.0, 0.0, 0.0)
# Of noise or of softness: nothing known, and known to be none.
SILENT, NONE = 0.0, 0.2
# Pixels of softness that a look adds to what its network is told (`Condition::for_look` of upscale_core): for pictures
# with less noise than QUIET, in levels; nothing at the first of SOFT and from the last on, all between the others.
ADDED_SOFTNESS = {
    2: {"faithful": 0.0, "natural": 0.08, "crisp": 0.16},
    4: {"faithful": 0.0, "natural": 0.06, "crisp": 0.06},
}
QUIET, SOFT = 1.25, (0.2, 0.35, 0.6, 0.72)
# Levels of noise and pixels of softness from which on a picture is restored, as in upscale_core/src/condition.rs; then
# the noise, in levels, that soft lossless pictures without noise count as.
RESTORED_NOISE_MIN, RESTORED_SOFTNESS_MIN, CAMERA_NOISE = 2.0, 0.2, 2.0

# Tables K.1 and K.2 of ITU-T T.81, which libjpeg scales by quality; row by row, not in zigzag order.
# fmt: off
LUMA_TABLE = torch.tensor([
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99]).reshape(8, 8)
CHROMA_TABLE = torch.tensor([
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, *[99] * 32]).reshape(8, 8)
# fmt: on


def quality_table(table: Tensor, quality: Tensor) -> Tensor:
    """`table` as libjpeg scales it: [n, 8, 8] whole steps of 1..255 for qualities [n] of 1..100."""
    quality = quality.long().clamp(1, 100)
    percent = torch.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    return ((table * percent[:, None, None] + 50) // 100).clamp(1, 255).float()


def coarseness(table: Tensor) -> Tensor:
    """[..., 8, 8] steps to [...] in 0..1."""
    return ((1.0 + table.float().mean(dim=(-2, -1))).log2() / 8.0).clamp(0.0, 1.0)


def jpeg_condition(quality: int, subsampled: float) -> tuple[float, float, float, float]:
    """The vector of a file that libjpeg wrote at `quality`."""
    chosen = torch.tensor([quality])
    luma, chroma = (float(coarseness(quality_table(table, chosen))[0]) for table in (LUMA_TABLE, CHROMA_TABLE))
    return 1.0, luma, chroma, subsampled


def source_numbers(found: Tensor) -> Tensor:
    """[n, 2] as the estimator's regression gives it to the two inputs, [n, 2] in 0.2..1."""
    return NONE + (1.0 - NONE) * found.clamp(0.0, 1.0)


def source_inputs(noise: float | None, softness: float | None) -> tuple[float, float]:
    """The two inputs for noise in levels of 255 and softness in pixels; `None` is unknown."""
    known = source_numbers(shares(torch.tensor([noise or 0.0]), torch.tensor([softness or 0.0])))[0].tolist()
    return tuple(SILENT if one is None else number for one, number in zip((noise, softness), known, strict=True))


def told_in(look: str, condition: tuple[float, ...], scale: int) -> tuple[float, ...]:
    """What a look's network is told of a picture that reads like `condition`; `Condition::for_look` of upscale_core."""
    *file, noise, softness = condition
    if noise >= source_inputs(QUIET, 0.0)[0]:
        return condition
    nothing, rising, falling, none = (source_inputs(0.0, one)[1] for one in SOFT)
    if tuple(file) == CLEAN and softness >= source_inputs(0.0, RESTORED_SOFTNESS_MIN)[1]:
        file, noise = UNKNOWN if scale == 4 else CLEAN, source_inputs(CAMERA_NOISE, 0.0)[0]
    share = min(1.0, (softness - nothing) / (rising - nothing), (none - softness) / (none - falling))
    return (*file, noise, softness + (source_inputs(0.0, ADDED_SOFTNESS[scale][look])[1] - NONE) * max(0.0, share))


@torch.no_grad()
def told(estimator: Estimator, picture: Tensor) -> Tensor:
    """[n, 3, h, w] in 0..1 to the two inputs [n, 2]; where noise may be texture, nothing is said of it."""
    found = features(picture)
    said = estimator(found)
    numbers = source_numbers(said)
    numbers[may_be_texture(found, levels(said)[:, 0]), 0] = SILENT
    return numbers
