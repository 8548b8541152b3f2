"""What a config file asks of a training: sizes, shares, rates and the loss by step."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from torch import Tensor

from .network import Architecture


@dataclass(frozen=True)
class Recipe:
    """A config file, parsed. `patch_sides` are input pixels, spread evenly over the steps.

    Each step sees `batch` clean patches and `damaged` ones that went through JPEG and the like (mixture.py), in
    `clean_groups` and `damaged_groups` of one condition each.
    `start_from` is a checkpoint of another scale, whose trunk is taken, or a weight file to grow from (grow.py);
    `critic_from`, the file of a critic that adversarial.py goes on with.
    `scenes` of a step are damaged each by itself and judged by `estimator` (scenes.py), `crops` patches from each.
    Where `pool` scenes are held (pool.py), that many new ones come every `reuse` steps; a step sees `batch` patches.
    The rate of a `constant` run stays at its peak until `cool_from`, where there is one, and falls evenly from there.
    `muon` trains the inner convolutions with Muon instead of Adam. `contrast` is what detail.py and faces.py make a
    factor of e too little or too much contrast cost, of square error 0.1 in the loss; `grid`, what a grid costs;
    `comb`, what a factor of e more power at the input's own frequencies costs; `lines`, what any other line in the
    spectrum costs; `weave`, what a factor of e more of the finest detail than `start_from` draws does;
    `critic`, what its judgement counts; `sharpen`, how much of an unsharp mask the photographs asked for have;
    `steady`, levels of noise for which apart.py asks its first teacher again.
    """

    name: str
    scale: int
    steps: int
    channels: int = 32
    blocks: int = 4
    arch: str = "residual"
    activation: str = "relu"
    input_scale: float = 1.0
    start_from: str = ""
    critic_from: str = ""
    seed: int = 1
    conditioned: bool = False
    inputs: int = 4
    scenes: int = 0
    crops: int = 2
    pool: int = 0
    reuse: int = 4
    estimator: str = ""
    constant: bool = False
    cool_from: int = 0
    batch: int = 8
    clean_groups: int = 1
    damaged: int = 0
    damaged_groups: int = 1
    pages: int = 0
    page_share: float = 1.0 / 6.0
    muon: bool = False
    patch_sides: tuple[int, ...] = (32, 48, 64)
    rate_peak: float = 2e-3
    rate_end: float = 1e-6
    warm_up_steps: int = 300
    clip: float = 0.5
    ema: float = 0.999
    l2_share: float = 0.1
    psnr_share: float = 0.0
    contrast: float = 0.0
    grid: float = 10.0
    comb: float = 0.0
    lines: float = 0.0
    weave: float = 0.0
    critic: float = 0.0
    sharpen: float = 0.0
    steady: float = 0.0
    bf16_share: float = 0.0
    checkpoint_seconds: int = 90

    def architecture(self) -> Architecture:
        return Architecture(**{field.name: getattr(self, field.name) for field in fields(Architecture)})

    def rate(self, step: int) -> float:
        """Linear warm-up, then half a cosine down to `rate_end` at the last step."""
        if step < self.warm_up_steps:
            return self.rate_peak * (step + 1) / self.warm_up_steps
        if self.constant:
            left = (self.steps - step) / max(1, self.steps - self.cool_from) if self.cool_from else 1.0
            return max(self.rate_end, self.rate_peak * min(1.0, left))
        done = (step - self.warm_up_steps) / max(1, self.steps - self.warm_up_steps)
        return self.rate_end + (self.rate_peak - self.rate_end) * 0.5 * (1.0 + math.cos(math.pi * done))

    def patch_side(self, step: int) -> int:
        return self.patch_sides[min(len(self.patch_sides) * step // self.steps, len(self.patch_sides) - 1)]

    def bf16(self, step: int) -> bool:
        """Coarse arithmetic first, where speed counts; the end in full precision, where the last hundredths come."""
        return step < self.steps * self.bf16_share

    def loss(self, step: int, output: Tensor, clean: Tensor) -> Tensor:
        """Charbonnier (epsilon 1e-3), and at the end L2, which is what PSNR measures, of all patches or of each.

        A sixth of the patches are drawn pages. Text has some eight times the square error of photographs at 4x
        (21.98 and 30.80 dB by F): in the mean of all it would have over half of the say. The logarithm of
        each patch's own (Chen et al. 2022) lets all speak alike, down to an error of 40 dB, where more is not seen.
        """
        error = output.float() - clean
        if step >= self.steps * (1.0 - self.psnr_share):
            return (error.square().mean(dim=(1, 2, 3)) + 1e-4).log().mean() * 0.1
        if step >= self.steps * (1.0 - self.l2_share):
            return error.square().mean() * 20.0
        return (error.square() + 1e-6).sqrt().mean()


# What a config file may give for a field, by the field's type: a step of 1.0 would fail in the middle of a training.
TAKEN = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,), "tuple[int, ...]": (list,)}


def read_recipe(path: Path) -> Recipe:
    """The recipe of a config file. Raises ValueError for a key that it does not know or a value of another type."""
    with open(path, "rb") as file:
        table = tomllib.load(file)
    types = {field.name: str(field.type) for field in fields(Recipe)}
    if unknown := set(table) - set(types):
        raise ValueError(f"{path}: unknown keys {sorted(unknown)}")
    for key, value in table.items():
        if type(value) not in TAKEN[types[key]] or (type(value) is list and {type(one) for one in value} != {int}):
            raise ValueError(f"{path}: {key} = {value!r} is not of type {types[key]}")
    return Recipe(**{key: tuple(value) if type(value) is list else value for key, value in table.items()})
