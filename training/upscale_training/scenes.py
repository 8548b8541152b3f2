"""What a step of a restoring network sees: scenes, each with its own damage, and what the service would say of it.

A scene is a small picture, mostly of 64 to 96 pixels, with its clean original. The estimator judges all of it, as it
judges a customer's picture, and the network trains on patches cut from it under that estimate: what the estimator
gets wrong is in the training too. Everything is drawn from (seed, step, rank) on the CPU; the work is done where the
pictures lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import condition, degrade
from .camera import Camera, passed_on, photographed
from .condition import SILENT, source_inputs, source_numbers, told
from .data import Pictures
from .estimate import Estimator, shares
from .mixture import MILD, PLAIN, STRONG, Group, Mixture, some_kernels

SIDES = (64, 80, 96)
KINDS = ("clean", "file", "camera")
# Quality of a camera's files.
JPEG_RANGE = (30, 95)


@dataclass(frozen=True)
class Scenes:
    """Shares of a restoring mixture: half as the mixture before it had them, half as cameras make pictures."""

    clean: float = 1.0 / 3.0
    file: float = 1.0 / 6.0
    # Of the camera's pictures that are compressed, and of those that were once more, larger, before.
    compressed: float = 0.5
    # Of the camera's pictures that were only shrunk and softened: files from the web that someone enlarged or blurred.
    # By the shares a hundredth was like that without them; a run at 2x that gained elsewhere lost 0.4 to 0.9 dB there.
    only_soft: float = 0.15
    only_soft_range: tuple[float, float] = (0.3, 1.6)
    # Of those that are compressed, the ones that were so before, larger (`passed_on`).
    passed_on: float = 0.0
    silent: float = 0.3
    half_silent: float = 0.1
    # How far the word on softness is moved to the truth where less noise than `surer_below` levels is heard. Scenes are
    # small: softness is read 0.26 to 0.33 pixels off (rms) in 80 pixels, 0.22 in 160 and 0.12 to 0.14 on the bed's
    # pictures, so that networks learnt to trust the word less than they could. Noise in the picture, or noise behind
    # a JPEG, is read hardly better in larger ones.
    surer: float = 0.5
    surer_below: float = 3.0
    # Of a scene, in small pixels; none: SIDES.
    sides: tuple[int, ...] = ()
    mixture: Mixture = field(default_factory=Mixture)
    camera: Camera = field(default_factory=Camera)


@dataclass(frozen=True)
class Seen:
    """Scenes [n, 3, side, side] in 0..1, of 8 bits; what their files say, [n, 4]; noise and softness, [n, 2]."""

    small: Tensor
    clean: Tensor
    file: Tensor
    truth: Tensor


def sides(scenes: Scenes) -> tuple[int, ...]:
    return scenes.sides or SIDES


def kinds_of(count: int, draw: np.random.Generator, scenes: Scenes) -> list[str]:
    """Spread evenly, so that every step has its share of each: [count] names."""
    ends = np.cumsum([scenes.clean, scenes.file])
    places = (np.arange(count) + draw.random()) / count
    return [KINDS[int(np.searchsorted(ends, place, side="right"))] for place in places]


def seen(pictures: Pictures, draw: np.random.Generator, kinds: list[str], side: int, scenes: Scenes) -> Seen:
    """One scene for each of `kinds`."""
    scale, margin = pictures.scale, degrade.MARGIN
    parts = []
    for kind, make in (("clean", clean_scenes), ("file", file_scenes), ("camera", camera_scenes)):
        chosen = [place for place, one in enumerate(kinds) if one == kind]
        if chosen:
            # Pixel art is not photographed: it is never softened and gets no noise.
            big = pictures.patches(draw, len(chosen), (side + 2 * margin) * scale, pixel_art=kind != "camera")
            parts.append((chosen, (*make(big, draw, scale, scenes), big)))
    order = torch.tensor([place for chosen, _ in parts for place in chosen]).argsort()
    small, file, truth, big = (torch.cat([part[i] for _, part in parts])[order] for i in range(4))
    inside = slice(margin * scale, -margin * scale)
    return Seen(small, big[:, :, inside, inside], file, truth)


Made = tuple[Tensor, Tensor, Tensor]


def clean_scenes(big: Tensor, draw: np.random.Generator, scale: int, scenes: Scenes) -> Made:
    kernels = some_kernels(draw, len(big), scenes.mixture)
    small = degrade.round_8bit(degrade.shrink(big, kernels, scale))
    unknown = draw.random(len(big)) < scenes.mixture.clean_unknown
    return small, file_numbers([None if one else condition.CLEAN for one in unknown], big), kernel_truth(kernels, big)


def kernel_truth(kernels: Tensor, big: Tensor) -> Tensor:
    """No noise, and the softness of the kernels."""
    softness = torch.tensor([(1.0 / 12.0) ** 0.5 if k == 2 else (1.0 / 6.0) ** 0.5 if k == 3 else 0.0 for k in kernels])
    return torch.stack([torch.zeros(len(kernels)), softness], dim=1).to(big.device)


def file_numbers(inputs: list[tuple[float, ...] | None], big: Tensor) -> Tensor:
    return torch.tensor([one or condition.UNKNOWN for one in inputs], device=big.device)


def file_scenes(big: Tensor, draw: np.random.Generator, scale: int, scenes: Scenes) -> Made:
    """JPEG, a quarter of it with a little noise and blur before, as the networks before these saw it."""
    mixture, device = scenes.mixture, big.device
    shares = [1.0 - mixture.mild - mixture.strong, mixture.mild, mixture.strong]
    damages = [(PLAIN, MILD, STRONG)[picked] for picked in draw.choice(3, len(big), p=shares)]
    sigma, level = (
        torch.tensor([draw.uniform(*pair) for pair in pairs], dtype=torch.float32, device=device)
        for pairs in ([one.blur for one in damages], [one.noise for one in damages])
    )
    kernels = some_kernels(draw, len(big), mixture)
    small = degrade.blur(degrade.shrink(big, kernels, scale), sigma)
    small = degrade.noise(small, level, degrade.normal(draw, small.shape, device))
    truth = torch.stack([level, (sigma.square() + kernel_truth(kernels, big)[:, 1].square()).sqrt()], dim=1)
    least, most = np.array([one.quality for one in damages]).T
    return *compressed(small, draw, least, most, scenes), truth


def camera_scenes(big: Tensor, draw: np.random.Generator, scale: int, scenes: Scenes) -> Made:
    small, truth = photographed(big, draw, scale, scenes.camera)
    only_soft = torch.from_numpy(draw.random(len(big)) < scenes.only_soft).to(big.device)
    if only_soft.any():
        softened, known = softly_shrunk(big, draw, scale, scenes)
        small = torch.where(only_soft[:, None, None, None], softened, small)
        truth = torch.where(only_soft[:, None], known, truth)
    inputs = file_numbers([None if one else condition.CLEAN for one in draw.random(len(big)) < 0.1], big)
    through = torch.from_numpy(draw.random(len(big)) < scenes.compressed).to(big.device) & ~only_soft
    before = small
    if scenes.passed_on:
        shared = torch.from_numpy(draw.random(len(big)) < scenes.passed_on).to(big.device)
        before = torch.where(shared[:, None, None, None], passed_on(small, draw), small)
    packed, known = compressed(before, draw, *JPEG_RANGE, scenes)
    small = torch.where(through[:, None, None, None], packed, degrade.round_8bit(small))
    return small, torch.where(through[:, None], known, inputs), truth


def softly_shrunk(big: Tensor, draw: np.random.Generator, scale: int, scenes: Scenes) -> tuple[Tensor, Tensor]:
    """Bicubic once, then a round blur; not rounded, and what is true of it, [n, 2]."""
    sigma = torch.from_numpy(draw.uniform(*scenes.only_soft_range, len(big))).float().to(big.device)
    small = degrade.shrink(big, torch.zeros(len(big), dtype=torch.long), scale)
    return degrade.blur(small, sigma), torch.stack([torch.zeros_like(sigma), sigma], dim=1)


def compressed(
    small: Tensor, draw: np.random.Generator, least: NDArray | int, most: NDArray | int, scenes: Scenes
) -> tuple[Tensor, Tensor]:
    """JPEG once or twice, each picture by its own tables, and their condition input, [n, 4]; qualities from `least` to
    `most`, of all or of each."""
    size, device, mixture = len(small), small.device, scenes.mixture
    qualities = torch.from_numpy(draw.integers(least, most + 1, size))
    halved = torch.from_numpy(draw.random(size) < mixture.halved)
    flatter = torch.from_numpy(draw.uniform(0.0, 0.6, size) * (draw.random(size) < 0.3)).float()[:, None, None]
    both = (condition.quality_table(table, qualities) for table in (condition.LUMA_TABLE, condition.CHROMA_TABLE))
    luma, chroma = (
        (table + flatter * (table.mean(dim=(1, 2), keepdim=True) - table)).round().clamp(min=1.0) for table in both
    )
    again = torch.from_numpy(draw.random(size) < mixture.twice).to(device)[:, None, None, None]
    first, shift = (
        torch.from_numpy(draw.integers(40, 96, size)).to(device),
        [int(one) for one in draw.integers(1, 8, 2)],
    )
    if again.any():
        moved = degrade.jpeg(small.roll(shift, (2, 3)), first, halved.to(device)).roll([-one for one in shift], (2, 3))
        small = torch.where(again, moved, small)
    packed = degrade.jpeg_by_tables(small, luma.to(device), chroma.to(device), halved.to(device))
    true = [condition.coarseness(table) for table in (luma, chroma)]
    inputs = [
        condition_for(draw, int(qualities[i]), (1.0, float(true[0][i]), float(true[1][i]), float(halved[i])), mixture)
        for i in range(size)
    ]
    return packed, torch.tensor(inputs, device=device)


def condition_for(
    draw: np.random.Generator, quality: int, true: tuple[float, ...], mixture: Mixture
) -> tuple[float, ...]:
    """The true numbers, none, or those of another quality or of a clean file."""
    picked = draw.random()
    if picked < mixture.true:
        return true
    if picked < mixture.true + mixture.unknown:
        return condition.UNKNOWN
    if draw.random() < mixture.lie_clean:
        return condition.CLEAN
    return condition.jpeg_condition(int(np.clip(quality + draw.integers(-25, 26), 10, 98)), true[3])


def told_scenes(
    pictures: Pictures, draw: np.random.Generator, count: int, side: int, estimator: Estimator | None, scenes: Scenes
) -> tuple[Seen, Tensor]:
    """`count` scenes and the condition of each, [n, 6]; without an estimator what the files say alone, [n, 4]."""
    shot = seen(pictures, draw, kinds_of(count, draw, scenes), side, scenes)
    if estimator is None:
        return shot, shot.file
    said = surer(told(estimator, shot.small), shot.truth, scenes)
    return shot, torch.cat([shot.file, silenced(said, draw, scenes)], dim=1)


def scene_groups(
    pictures: Pictures,
    draw: np.random.Generator,
    count: int,
    crops: int,
    patch: int,
    estimator: Estimator,
    scenes: Scenes,
) -> list[Group]:
    """`count` scenes, each cut into `crops` patches under the scene's condition."""
    side, scale = max(int(draw.choice(sides(scenes))), -(-patch // 16) * 16), pictures.scale
    shot, numbers = told_scenes(pictures, draw, count, side, estimator, scenes)
    groups = []
    for place in range(count):
        top, left = (torch.from_numpy(draw.integers(0, side - patch + 1, crops)).to(numbers.device) for _ in "yx")
        small, clean = (value[place].expand(crops, -1, -1, -1) for value in (shot.small, shot.clean))
        small = degrade.cut(small, top, left, patch)
        groups.append(Group(small, degrade.cut(clean, top * scale, left * scale, patch * scale), numbers[place]))
    return groups


def surer(said: Tensor, truth: Tensor, scenes: Scenes) -> Tensor:
    """The two inputs [n, 2], softness moved to that of `truth`, in levels and pixels, unless noise is heard."""
    noise, softness = said.unbind(1)
    true = source_numbers(shares(truth[:, 0], truth[:, 1]))[:, 1]
    quiet = noise < source_inputs(scenes.surer_below, None)[0]
    return torch.stack([noise, torch.where(quiet, torch.lerp(softness, true, scenes.surer), softness)], dim=1)


def silenced(said: Tensor, draw: np.random.Generator, scenes: Scenes) -> Tensor:
    """Both numbers unknown in some scenes, one of them in a few: [n, 2]."""
    both, one = draw.random(len(said)) < scenes.silent, draw.random((len(said), 2)) < scenes.half_silent
    return said.masked_fill(torch.from_numpy(both[:, None] | one).to(said.device), SILENT)
