"""Fits the regression of estimate.py to scenes whose noise and softness are known, and prints its errors.

`python -m upscale_training.fit_estimator --data DATA --out FILE [--scenes 20000] [--processes 2] [--keep FILE]`

With `--keep` the two layers of another file stay, and only what they take from sharpened pictures is fitted anew: the
networks were trained under what that file says of all others.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from . import degrade
from .camera import Camera
from .data import Pictures
from .estimate import (
    NOISE_MAX,
    OVERSHOOTS,
    SHARPENED_HIDDEN,
    SOFTNESS_MAX,
    Estimator,
    chain,
    features,
    levels,
    load_estimator,
    save_estimator,
    shares,
    through,
)
from .export import golden_input
from .rendered import PAGES, pixel_art
from .scenes import Scenes, kinds_of, seen

# Of its own: no step of a training draws these.
SEED = 23
AT_ONCE = 8
# One drawn page for so many scenes.
DRAWN = 6
# One scene in eight is kept to be judged by.
HELD_OUT = 8
MIXTURE = Scenes(clean=0.3, file=0.15)
# Of a scene, by scale, in small pixels: what the training pictures have room for. Larger ones are read better.
SIDES = {2: (64, 96, 128, 176, 224), 4: (64, 80, 96, 112)}
# Scenes that are soft and nothing else, up to more than the mixture has: one for so many of it. Without them a picture
# softened by 1.6 pixels, the most that the mixture softens like that, read .08 too sharp.
SOFT = Scenes(clean=0.0, file=0.0, only_soft=1.0, only_soft_range=(0.3, 2.2))
MIXED = 4
# Scenes sharpened as a whole, more of them soft: one for so many others.
SHARPENED = Scenes(clean=0.0, file=0.0, only_soft=0.0, camera=Camera(sharp=0.1, very_soft=0.4, whole_sharpened=1.0))
UNSHARPENED = 2
# What it costs to call a noisy picture or a sharp one softer than it is, beside an error the other way. Most noisy
# scenes are soft, so by errors that count alike sharp ones with noise read soft by .2 to .35 pixels; a network that
# undoes what is not there loses .4 to .9 dB at 2x, one that leaves some softness behind noise a tenth of that.
TOO_SOFT, NOISY, SHARP = 2.5, 1.5, 0.05
# What counts an error on a scene that was not sharpened; pixels that a picture must read too soft to be told less; by
# how much the rest is then multiplied, for the squared error of rare pictures is least where it is too small.
UNSHARPENED_WEIGHT, OVERSTATED_MIN, OVERSTATED_GAIN = 2.5, 0.05, 3.0
# As many small regressions are fitted to that, and their mean is taken.
PARTS = 4


def shown(arguments: tuple[Path, Path, Scenes, int, int]) -> tuple[Tensor, Tensor]:
    """Features and truths of the scenes of one process."""
    data, cache, mixture, process, count = arguments
    torch.set_num_threads(1)
    by_scale = {scale: Pictures(data, cache, scale, 400) for scale in (2, 4)}
    found, truths = [], []
    for number in range(0, count, AT_ONCE):
        draw = np.random.default_rng([SEED, process, number])
        scale = int(draw.choice((2, 4)))
        side = int(draw.choice(SIDES[scale]))
        shot = seen(by_scale[scale], draw, kinds_of(AT_ONCE, draw, mixture), side, mixture)
        found.append(features(shot.small))
        truths.append(shot.truth)
    return torch.cat(found), torch.cat(truths)


def drawn(arguments: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Pages as programs draw them, never shrunk; pixel art with pixels of up to 6; all sharp and clean."""
    rank, count = arguments
    torch.set_num_threads(1)
    found = []
    for number in range(count):
        draw = np.random.default_rng([SEED, 1, rank, number])
        side, times = int(draw.choice(SIDES[4])), int(draw.integers(1, 7))
        if draw.random() < 0.5:
            page = np.asarray(pixel_art(draw, -(-side // times) if draw.random() < 0.5 else side * 2))
            page = page.repeat(times, 0).repeat(times, 1)[:side, :side]
        else:
            page = np.asarray(PAGES[draw.integers(len(PAGES))][1](draw, 2 * side))[:side, :side]
        found.append(features(torch.from_numpy(page.copy()).permute(2, 0, 1)[None] / 255.0))
    return torch.cat(found), torch.zeros(count, 2)


def fit(found: Tensor, truths: Tensor, epochs: int) -> Estimator:
    """By Adam on the absolute error, rounded off near zero; noise and softness count alike."""
    torch.manual_seed(SEED)
    estimator = Estimator(found.shape[1])
    estimator.mean.copy_(found.mean(0))
    estimator.deviation.copy_(found.std(0) + 1e-3)
    asked = shares(truths[:, 0], truths[:, 1]).clamp(0.0, 1.0)
    dear = (truths[:, 0] > NOISY) | (truths[:, 1] < SHARP)
    optimiser = torch.optim.AdamW(estimator.layers.parameters(), lr=2e-3, weight_decay=3e-3)
    batch = 256
    steps = epochs * (len(found) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(found)).split(batch)[: len(found) // batch]:
            error = misread(estimator.unsharpened(found[chosen]), asked[chosen], dear[chosen])
            optimiser.zero_grad()
            error.backward()
            optimiser.step()
            schedule.step()
    return estimator.requires_grad_(False)


def misread(said: Tensor, asked: Tensor, dear: Tensor) -> Tensor:
    """The mean error of both numbers, [n, 2]; too much softness counts TOO_SOFT times where it is `dear` [n]."""
    error = torch.nn.functional.smooth_l1_loss(said, asked, beta=0.03, reduction="none")
    weight = torch.where(dear & (said[:, 1] > asked[:, 1]), TOO_SOFT, 1.0)
    return (error[:, 0] + error[:, 1] * weight).mean() * 0.5


def fit_sharpened(estimator: Estimator, found: Tensor, others: Tensor, softness: Tensor, epochs: int) -> None:
    """What sharpened scenes `found`, of true `softness` as a share, read too soft by; of `others` nothing is taken."""
    every = torch.cat([others, found])
    shot = every[:, -OVERSHOOTS:]
    estimator.mean[-OVERSHOOTS:], estimator.deviation[-OVERSHOOTS:] = shot.mean(0), shot.std(0) + 1e-3
    asked = torch.cat([torch.zeros(len(others)), (estimator.unsharpened(found)[:, 1] - softness).clamp(min=0.0)])
    weight = torch.cat([torch.full((len(others),), UNSHARPENED_WEIGHT), torch.ones(len(found))])
    scaled = estimator.scaled(every)
    parts = [fit_part(scaled, asked, weight, SEED + number, epochs) for number in range(PARTS)]
    for layer, *same in zip(estimator.sharpened, *parts, strict=True):
        layer.bias.copy_(torch.cat([one.bias for one in same]) if layer.out_features > 1 else mean_bias(same))
        layer.weight.copy_(merged([one.weight for one in same], layer))
    last = estimator.sharpened[-1]
    last.bias.sub_(OVERSTATED_MIN / SOFTNESS_MAX).mul_(OVERSTATED_GAIN)
    last.weight.mul_(OVERSTATED_GAIN)


def mean_bias(layers: list[torch.nn.Linear]) -> Tensor:
    return torch.stack([one.bias for one in layers]).mean(0)


def merged(weights: list[Tensor], layer: torch.nn.Linear) -> Tensor:
    """Layers side by side as one: the first reads what all read, the last is the mean of all."""
    if layer.out_features == 1:
        return torch.cat(weights, dim=1) / len(weights)
    return torch.cat(weights) if weights[0].shape[1] == layer.in_features else torch.block_diag(*weights)


def fit_part(scaled: Tensor, asked: Tensor, weight: Tensor, seed: int, epochs: int) -> torch.nn.ModuleList:
    """One of the small regressions whose mean is taken: alone, each is unsure of other pictures."""
    torch.manual_seed(seed)
    layers = chain(scaled.shape[1], *(size // PARTS for size in SHARPENED_HIDDEN), 1)
    optimiser = torch.optim.AdamW(layers.parameters(), lr=2e-3, weight_decay=3e-2)
    batch = 256
    steps = epochs * (len(scaled) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(scaled)).split(batch)[: len(scaled) // batch]:
            read = torch.nn.functional.leaky_relu(through(layers, scaled[chosen])[:, 0], 0.1)
            error = ((read - asked[chosen]).square() * weight[chosen]).mean()
            optimiser.zero_grad()
            error.backward()
            optimiser.step()
            schedule.step()
    return layers.requires_grad_(False)


def kept_layers(path: Path, found: Tensor) -> Estimator:
    """Those of a file, for features as those of `found`."""
    estimator = load_estimator(path)
    if len(estimator.mean) != found.shape[1]:
        raise ValueError(f"{path} is for {len(estimator.mean)} features, not for {found.shape[1]}")
    return estimator


def report(estimator: Estimator, found: Tensor, truths: Tensor) -> str:
    """Mean, bias and error of both numbers by what is true, on scenes that were kept out."""
    said = levels(estimator(found))
    rows = ["| true | scenes | mean | bias | rms error |", "|---|---|---|---|---|"]
    bounds = (
        ("noise", 0, (0.0, 0.01, 2.0, 5.0, 10.0, 15.0, 1.5 * NOISE_MAX)),
        ("softness", 1, (0.0, 0.01, 0.3, 0.6, 0.9, 1.3, 3.0)),
    )
    for name, place, ends in bounds:
        for low, high in zip((-1.0, *ends[1:-1]), ends[1:], strict=True):
            chosen = (truths[:, place] > low) & (truths[:, place] <= high)
            if chosen.any():
                one, true = said[chosen, place], truths[chosen, place]
                bias, error = (one - true).mean(), (one - true).square().mean().sqrt()
                rows.append(
                    f"| {name} to {high:g} | {int(chosen.sum())} | {one.mean():.2f} | {bias:+.2f} | {error:.2f} |"
                )
    return "\n".join(rows)


def golden_pictures() -> list[Tensor]:
    """Four of [1, 3, h, w], by formula: waves and edges, the same with noise, softened, and a large one."""
    small = golden_input(96, 80)
    noise = torch.from_numpy(np.random.default_rng(SEED).normal(0.0, 8.0 / 255.0, small.shape)).float()
    soft = degrade.blur(small, torch.tensor([1.1]))
    # More pixels than STEP_PIXELS_MAX: of these every second line is looked at.
    return [degrade.round_8bit(one) for one in (small, small + noise, soft, golden_input(301, 250))]


def save_golden(estimator: Estimator, path: Path) -> None:
    """What the Rust tests compare with: pictures, features, estimates."""
    tensors = {}
    for number, picture in enumerate(golden_pictures()):
        tensors[f"picture.{number}"] = (picture[0] * 255.0).round().to(torch.uint8).contiguous()
        tensors[f"features.{number}"] = features(picture)[0].contiguous()
        tensors[f"estimate.{number}"] = estimator.estimate(picture)[0].contiguous()
    save_file(tensors, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with ATTRIBUTION.tsv and its pictures")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="caches")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scenes", type=int, default=24000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="an estimator whose two layers stay as they are")
    arguments = parser.parse_args()
    found, truths, sharpened, true = made(arguments)
    kept, apart = (torch.arange(len(one)) // AT_ONCE % HELD_OUT == 0 for one in (found, sharpened))
    if arguments.keep:
        estimator = kept_layers(arguments.keep, found)
    else:
        estimator = fit(found[~kept], truths[~kept], arguments.epochs)
    fit_sharpened(
        estimator, sharpened[~apart], found[~kept], true[~apart, 1] / SOFTNESS_MAX, max(arguments.epochs // 2, 1)
    )
    save_estimator(estimator, arguments.out)
    save_golden(estimator, arguments.out.with_suffix(".golden.safetensors"))
    print(report(estimator, found[kept], truths[kept]))
    print(f"\nSharpened as a whole:\n\n{report(estimator, sharpened[apart], true[apart])}")


def made(arguments: argparse.Namespace) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features and truths of scenes and pages, then of the sharpened scenes."""
    cache, processes = arguments.runs / "cache", arguments.processes
    each = arguments.scenes // processes
    mixtures = ((MIXTURE, each), (SHARPENED, each // UNSHARPENED), (SOFT, each // MIXED))
    jobs = [
        (arguments.data, cache, mixture, place * processes + rank, count)
        for place, (mixture, count) in enumerate(mixtures)
        for rank in range(processes)
    ]
    Pictures(arguments.data, cache, 4, 400)
    with ProcessPoolExecutor(processes) as pool:
        pages = [(rank, each // DRAWN) for rank in range(processes)]
        scenes, drawings = list(pool.map(shown, jobs)), list(pool.map(drawn, pages))
    mixed, sharpened, soft = (scenes[first : first + processes] for first in range(0, len(jobs), processes))
    groups = ([*mixed, *soft, *drawings], sharpened)
    found, truths, apart, true = (torch.cat([part[i] for part in group]) for group in groups for i in range(2))
    return found, truths, apart, true


if __name__ == "__main__":
    main()
