"""What one training step sees: a group of clean and a group of damaged patches, each under one condition.

A group shares its condition, so that it is folded into the weights as the engine folds it. Everything is drawn
from (seed, step, place in the step) on the CPU; the pictures are worked on wherever they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import condition, degrade
from .data import Pictures

# Input pixels round a damaged patch: the JPEG grid falls anywhere, and no edge of the working area is seen.
ROOM = 16
Draw = np.random.Generator


@dataclass(frozen=True)
class Mixture:
    """Shares of the mixture, each drawn by itself; the defaults are those of S's last recipe.

    F, and S before it, had bicubic 0.8, lie_clean 0.3 and JPEGs from quality 30 on.
    """

    bicubic: float = 0.9
    clean_unknown: float = 0.1
    mild: float = 0.15
    strong: float = 0.1
    halved: float = 0.7
    twice: float = 0.2
    true: float = 0.7
    unknown: float = 0.2
    lie_clean: float = 0.5


@dataclass(frozen=True)
class Group:
    """small [n, 3, side, side] and clean [n, 3, side*scale, side*scale] in 0..1; the condition of all, or of each."""

    small: Tensor
    clean: Tensor
    condition: Tensor


@dataclass(frozen=True)
class Damage:
    """Ranges of what is drawn before JPEG: blur and noise (levels of 255), then JPEG's quality."""

    blur: tuple[float, float] = (0.0, 0.0)
    noise: tuple[float, float] = (0.0, 0.0)
    quality: tuple[int, int] = (20, 98)


PLAIN = Damage()
MILD = Damage((0.0, 1.0), (0.0, 6.0), (50, 95))
STRONG = Damage((0.3, 1.4), (2.0, 12.0), (20, 60))


def clean_group(pictures: Pictures, draw: Draw, size: int, side: int, shares: Mixture) -> Group:
    scale, margin = pictures.scale, degrade.MARGIN
    big = pictures.patches(draw, size, (side + 2 * margin) * scale)
    small = degrade.round_8bit(degrade.shrink(big, some_kernels(draw, size, shares), scale))
    inputs = condition.UNKNOWN if draw.random() < shares.clean_unknown else condition.CLEAN
    inside = slice(margin * scale, -margin * scale)
    return Group(small, big[:, :, inside, inside], torch.tensor(inputs, device=big.device))


def some_kernels(draw: Draw, size: int, shares: Mixture) -> Tensor:
    others = draw.integers(1, len(degrade.KERNELS), size)
    return torch.from_numpy(np.where(draw.random(size) < shares.bicubic, 0, others))


def damaged_group(pictures: Pictures, draw: Draw, size: int, side: int, shares: Mixture) -> Group:
    scale, margin = pictures.scale, degrade.MARGIN
    work = -(-side // 16) * 16 + ROOM
    big = pictures.patches(draw, size, (work + 2 * margin) * scale)
    small = degrade.shrink(big, some_kernels(draw, size, shares), scale)
    kind = draw.choice(3, p=[1.0 - shares.mild - shares.strong, shares.mild, shares.strong])
    small, inputs = compress(spoil(small, draw, (PLAIN, MILD, STRONG)[kind]), draw, (PLAIN, MILD, STRONG)[kind], shares)
    top, left = (torch.from_numpy(draw.integers(4, work - side - 3, size)).to(big.device) for _ in range(2))
    small = degrade.cut(small, top, left, side)
    clean = degrade.cut(big, (top + margin) * scale, (left + margin) * scale, side * scale)
    return Group(small, clean, torch.tensor(inputs, device=big.device))


def spoil(small: Tensor, draw: Draw, damage: Damage) -> Tensor:
    """Blur and noise, each picture its own amount."""
    if damage.blur[1] == 0.0:
        return small
    size = len(small)
    sigma, levels = (torch.from_numpy(draw.uniform(*pair, size)).float() for pair in (damage.blur, damage.noise))
    drawn = torch.from_numpy(draw.standard_normal(small.shape, np.float32))
    small = degrade.blur(small, sigma.to(small.device))
    return degrade.noise(small, levels.to(small.device), drawn.to(small.device))


def compress(small: Tensor, draw: Draw, damage: Damage, shares: Mixture) -> tuple[Tensor, tuple[float, ...]]:
    """JPEG once or twice; the last tables are the group's own, and what is said of them is mostly true."""
    size, device = len(small), small.device
    quality = int(draw.integers(damage.quality[0], damage.quality[1] + 1))
    halved = bool(draw.random() < shares.halved)
    luma, chroma = tables(quality, float(draw.uniform(0.0, 0.6)) if draw.random() < 0.3 else 0.0)
    first = torch.from_numpy(draw.integers(40, 96, size)).to(device)
    shift = [int(value) for value in draw.integers(1, 8, 2)]
    again = torch.from_numpy(draw.random(size) < shares.twice).to(device)[:, None, None, None]
    flags = torch.full((size,), halved, device=device)
    if again.any():
        moved = degrade.jpeg(small.roll(shift, (2, 3)), first, flags).roll([-one for one in shift], (2, 3))
        small = torch.where(again, moved, small)
    steps = (table.to(device).expand(size, 8, 8) for table in (luma, chroma))
    small = degrade.jpeg_by_tables(small, *steps, flags)
    return small, condition_for(draw, quality, luma, chroma, halved, shares)


def tables(quality: int, flatter: float) -> tuple[Tensor, Tensor]:
    """libjpeg's tables, drawn towards their mean by `flatter` 0..1, for other encoders have other tables."""
    chosen = torch.tensor([quality])
    both = (condition.quality_table(table, chosen)[0] for table in (condition.LUMA_TABLE, condition.CHROMA_TABLE))
    luma, chroma = ((table + flatter * (table.mean() - table)).round().clamp(min=1.0) for table in both)
    return luma, chroma


def condition_for(
    draw: Draw, quality: int, luma: Tensor, chroma: Tensor, halved: bool, shares: Mixture
) -> tuple[float, ...]:
    """The matched condition, the unknown one, or a mismatched one: of another quality, or of a clean file."""
    picked = draw.random()
    if picked < shares.true:
        return 1.0, float(condition.coarseness(luma)), float(condition.coarseness(chroma)), float(halved)
    if picked < shares.true + shares.unknown:
        return condition.UNKNOWN
    if draw.random() < shares.lie_clean:
        return condition.CLEAN
    return condition.jpeg_condition(int(np.clip(quality + draw.integers(-25, 26), 10, 98)), float(halved))
