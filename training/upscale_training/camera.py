"""Pictures as cameras and the internet make them: softness, shrinking by any kernel, grain that may be sharpened.

Tensors [n, 3, h, w] in 0..1; each picture of a batch is drawn for itself. JPEG follows in scenes.py. The shares are
those of the trial that decided for them, moved towards little softness (docs/decisions/0023-restoring.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from . import degrade
from .resize import resize_matrix

Draw = np.random.Generator
# Sizes by way of which a picture is shrunk in two steps, as shares of the size it ends with.
MIDDLES = (0.6, 0.75, 0.9, 1.15, 1.4, 1.8, 2.5)
# By how much each kernel softens, as the variance of a Gaussian in pixels of its own output.
SPREAD = {"bicubic": 0.0, "lanczos3": 0.0, "box": 1.0 / 12.0, "bilinear": 1.0 / 6.0}
KERNEL_SHARES = (0.5, 0.1, 0.2, 0.2)
# A kernel that enlarges softens by about this many pixels of its input.
ENLARGING = 0.375
STREAK = 5
# Of a file that was passed on: the size at which it was compressed first, as a share of that it ends with, the quality
# it had there, how many of them were sharpened after, and by an unsharp mask of which amount and radius in pixels.
SHARED_SIZES, SHARED_QUALITIES = (1.25, 1.5, 2.0), (30, 90)
SHARED_SHARPENED, SHARED_AMOUNT, SHARED_RADIUS = 0.3, (0.3, 1.0), (0.5, 1.0)
# Over which the softness of a sharpened picture is judged: frequencies in cycles a pixel, pixels of softness, and how
# much of the finest detail no restoring dares to bring back.
FREQUENCIES, SOFTNESSES, TIMID = (0.005, 0.5, 100), (0.0, 2.2, 111), 0.03


@dataclass(frozen=True)
class Camera:
    """Shares and ranges; sigma in source pixels, noise in levels of 255."""

    sharp: float = 0.25
    very_soft: float = 0.15
    soft_range: tuple[float, float] = (0.2, 0.95)
    very_soft_range: tuple[float, float] = (0.95, 2.2)
    uneven_lens: float = 0.4
    two_steps: float = 0.35
    quiet: float = 0.3
    noise_max: float = 25.0
    plain_grain: float = 0.45
    sharpened: float = 0.15
    # Of pictures that are sharpened as a whole, after all that softens them and before their grain, by an unsharp mask.
    # For the estimator alone: with such pictures in their mixture, networks learnt to take sharpness back.
    whole_sharpened: float = 0.0
    whole_amount: tuple[float, float] = (0.3, 4.0)
    whole_radius: tuple[float, float] = (0.5, 2.0)


@lru_cache(maxsize=1024)
def chain(whole: int, scale: int, first: str, middle: float, second: str, device: str) -> tuple[Tensor, float]:
    """The matrix of one axis, [whole - 2 MARGIN, whole * scale], at once or by way of `middle`; and its variance."""
    if middle == 0.0:
        matrix, variance = resize_matrix(whole * scale, whole, first), SPREAD[first]
    else:
        between = round(whole * middle)
        matrix = resize_matrix(between, whole, second) @ resize_matrix(whole * scale, between, first)
        variance = SPREAD[first] / middle**2 + SPREAD[second] * (1.0 if middle > 1.0 else middle**-2)
        if middle < 1.0:
            variance += ENLARGING**2 * (middle**-2 - 1.0)
    return torch.from_numpy(matrix[degrade.MARGIN : -degrade.MARGIN]).float().to(device), variance


@lru_cache(maxsize=16)
def distances(size: int, device: torch.device) -> Tensor:
    steps = torch.arange(size, device=device)
    return (steps[:, None] - steps).abs()


def gaussians(size: int, sigma: Tensor) -> Tensor:
    """[n, size, size]: a Gaussian blur of one axis by each `sigma` [n]; edges keep the sum at 1."""
    steps = torch.arange(size, dtype=torch.float32, device=sigma.device)
    taps = torch.exp(steps.square() * (-0.5 / sigma.square())[:, None])
    matrices = taps[:, distances(size, sigma.device)]
    return matrices / matrices.sum(2, keepdim=True)


def photographed(big: Tensor, draw: Draw, scale: int, camera: Camera) -> tuple[Tensor, Tensor]:
    """Clean pictures with a margin to small ones, not rounded, and what is true of them: noise and softness, [n, 2]."""
    small, variances = shrunk(big, draw, scale, camera)
    if camera.whole_sharpened > 0.0:
        small, variances = sharpened_whole(small, variances, draw, camera)
    field = grain(small, draw, camera)
    amount = torch.from_numpy(np.where(draw.random(len(big)) < camera.sharpened, draw.uniform(0.3, 1.2, len(big)), 0.0))
    radius = torch.from_numpy(draw.uniform(0.5, 1.2, len(big)))
    amount, radius = (value.float().to(big.device) for value in (amount, radius))
    if (amount > 0.0).any():
        # The grain alone: with the picture sharpened as well, networks learnt to take sharpness back.
        field = sharpened(field, amount, radius)
    noise = field.square().mean(dim=(1, 2, 3)).sqrt() * 255.0
    return small + field, torch.stack([noise, variances.sqrt()], dim=1)


def sharpened_whole(small: Tensor, variances: Tensor, draw: Draw, camera: Camera) -> tuple[Tensor, Tensor]:
    """Some of the pictures behind an unsharp mask, and what variance their blurs now count for, [n]."""
    size = len(small)
    chosen = draw.random(size) < camera.whole_sharpened
    amount = np.exp(draw.uniform(*np.log(camera.whole_amount), size)) * chosen
    drawn = amount, draw.uniform(*camera.whole_radius, size)
    amount, radius = (torch.from_numpy(value).float().to(small.device) for value in drawn)
    counted = softness_left(variances, amount, radius).square()
    return sharpened(small, amount, radius), torch.where(amount > 0.0, counted, variances)


def softness_left(variances: Tensor, amount: Tensor, radius: Tensor) -> Tensor:
    """The sigma whose undoing brings a blurred and sharpened picture closest to its original, [n].

    Of a picture whose power falls with the square of the frequency, as photographs' does. The network gains most when
    told this number: over 16 pairs of blur and mask it is off by 0.09 pixels, the kernel's second moment by 0.46.
    """
    places = torch.linspace(*FREQUENCIES, device=variances.device)

    def kept(sigma: Tensor) -> Tensor:
        return torch.exp(-2.0 * (np.pi * places * sigma[:, None]).square())

    passed = (1.0 + amount[:, None] * (1.0 - kept(radius))) * kept(variances.sqrt())
    sigmas = torch.linspace(*SOFTNESSES, device=variances.device)
    undone = kept(sigmas) * (1.0 + TIMID) / (kept(sigmas).square() + TIMID)
    error = ((1.0 - passed[:, None] * undone).square() / places).sum(2)
    return sigmas[error.argmin(dim=1)]


def shrunk(big: Tensor, draw: Draw, scale: int, camera: Camera) -> tuple[Tensor, Tensor]:
    """Out of focus, moved, and shrunk by some kernel in one step or two; the variances in small pixels, [n]."""
    size, whole, device = len(big), big.shape[-1] // scale, big.device
    matrices, sigmas, variances, streak = [], [], [], []
    for _ in range(size):
        sigma, along = lens(draw, camera)
        first, second = (degrade.KERNELS[draw.choice(4, p=KERNEL_SHARES)] for _ in range(2))
        middle = float(draw.choice(MIDDLES)) if draw.random() < camera.two_steps else 0.0
        matrix, variance = chain(whole, scale, first, middle, second, str(device))
        matrices.append(matrix)
        sigmas.append(sigma)
        variances.append(sigma**2 + along**2 / 2.0 + variance)
        streak.append(along)
    both, soft = torch.stack(matrices), [place for place, sigma in enumerate(sigmas) if sigma > 0.06]
    if soft:
        chosen = torch.tensor([sigmas[place] * scale for place in soft], dtype=torch.float32, device=device)
        both[torch.tensor(soft, device=device)] @= gaussians(whole * scale, chosen)
    both = both[:, None]
    small, streak = both @ big @ both.transpose(-1, -2), torch.tensor(streak)
    angle = torch.from_numpy(draw.uniform(0.0, np.pi, size)).float()
    if (streak > 0.1).any():
        moved = streaked(small, streak.to(big.device), angle.to(big.device))
        small = torch.where((streak > 0.1).to(big.device)[:, None, None, None], moved, small)
    return small, torch.tensor(variances, device=big.device, dtype=torch.float32)


def lens(draw: Draw, camera: Camera) -> tuple[float, float]:
    """Sigma in every direction and, for an uneven one, what one direction has besides; in source pixels."""
    picked = draw.random()
    if picked < camera.sharp:
        return 0.0, 0.0
    wide = picked > 1.0 - camera.very_soft
    sigma = draw.uniform(*(camera.very_soft_range if wide else camera.soft_range))
    ratio = draw.uniform(1.0, 2.5) if draw.random() < camera.uneven_lens else 1.0
    least = sigma * (2.0 / (1.0 + ratio**2)) ** 0.5
    return float(least), float(least * (ratio**2 - 1.0) ** 0.5)


def streaked(small: Tensor, sigma: Tensor, angle: Tensor) -> Tensor:
    """Each picture blurred along one direction, by `sigma` [n] pixels at `angle` [n]."""
    steps = torch.arange(-STREAK, STREAK + 1, dtype=torch.float32, device=small.device)
    cos, sin = (value[:, None, None] for value in (angle.cos(), angle.sin()))
    along = steps[None, None, :] * cos + steps[None, :, None] * sin
    across = steps[None, :, None] * cos - steps[None, None, :] * sin
    taps = torch.exp(-0.5 * (along / sigma.clamp(min=0.05)[:, None, None]).square() - 0.5 * (across / 0.3).square())
    taps = taps / taps.sum((1, 2), keepdim=True)
    n, c, h, w = small.shape
    flat = functional.pad(small, (STREAK,) * 4, mode="reflect").reshape(1, n * c, h + 2 * STREAK, w + 2 * STREAK)
    return functional.conv2d(flat, taps.repeat_interleave(c, 0)[:, None], groups=n * c).view(n, c, h, w)


def grain(small: Tensor, draw: Draw, camera: Camera) -> Tensor:
    """Noise fields: plain (white, each colour its own, even), or grey or mixed, fine or coarse, even or by light."""
    size, device = len(small), small.device
    level = np.exp(draw.uniform(0.0, np.log(camera.noise_max), size)) * (draw.random(size) >= camera.quiet)
    drawn = degrade.normal(draw, small.shape, device)
    plain = draw.random(size) < camera.plain_grain
    # The weight of what all three colours share.
    shared = np.where(draw.random(size) < 0.5, 1.0, draw.uniform(0.0, 1.0, size)) * ~plain
    coarse = np.where(draw.random(size) < 0.5, draw.uniform(0.35, 0.9, size), 0.0) * ~plain
    uneven = (draw.random(size) < 0.6) & ~plain
    share, sigma, level = (torch.from_numpy(value).float().to(device) for value in (shared, coarse, level))
    share = share[:, None, None, None]
    field = share.sqrt() * drawn[:, :1] + (1.0 - share).sqrt() * drawn
    # The first colour would hear itself twice.
    field = field / field.square().mean(dim=(2, 3), keepdim=True).sqrt()
    if (sigma > 0.0).any():
        soft = degrade.blur(field, sigma)
        field = soft / soft.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    light = small.clamp(0.0, 1.0).mean(1, keepdim=True)
    by_light = torch.from_numpy(uneven).to(device)[:, None, None, None]
    field = torch.where(by_light, field * ((0.08 + light) / 0.58).sqrt(), field)
    return field * (level / 255.0)[:, None, None, None]


def sharpened(picture: Tensor, amount: Tensor, radius: Tensor) -> Tensor:
    """An unsharp mask of each picture's own `amount` [n] and `radius` [n] in pixels."""
    return picture + (picture - degrade.blur(picture, radius)) * amount[:, None, None, None]


def passed_on(small: Tensor, draw: Draw) -> Tensor:
    """Pictures [n, 3, side, side], sides multiples of 16, as they come from the web: a larger JPEG before, shrunk with
    what that left in it. No file says so, and nothing of it reads as noise or softness."""
    size, side = len(small), small.shape[-1]
    whole = round(side * draw.choice(SHARED_SIZES) / 16) * 16
    out, back = (
        torch.from_numpy(resize_matrix(*sides, kernel)).float().to(small.device)
        for sides, kernel in (((side, whole), "bicubic"), ((whole, side), draw.choice(list(SPREAD)[:3])))
    )
    quality = torch.from_numpy(draw.integers(SHARED_QUALITIES[0], SHARED_QUALITIES[1] + 1, size)).to(small.device)
    halved = torch.ones(size, dtype=torch.bool, device=small.device)
    made = back @ degrade.jpeg(out @ small @ out.T, quality, halved) @ back.T
    amount = draw.uniform(*SHARED_AMOUNT, size) * (draw.random(size) < SHARED_SHARPENED)
    amount, radius = (
        torch.from_numpy(one).float().to(made.device) for one in (amount, draw.uniform(*SHARED_RADIUS, size))
    )
    return sharpened(made, amount, radius)
