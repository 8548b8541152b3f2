"""Trains crisper detail from a finished network: `python -m upscale_training.detail CONFIG --data FOLDER`.

A network trained for the smallest square error makes textures too smooth: of all that could be there it draws the
mean. Here it is asked as well for as much local contrast as the photograph has, in three bands of fine detail; never
on pages of text, where contrast that is not in the file would be another letter. What repeats with every input pixel
has contrast too and costs the network nothing to draw: it is punished by itself. No second network judges.
look_gates.py says whether what comes of it may ship.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .data import Pictures
from .mixture import Group
from .scenes import scene_groups
from .train import SCENES, Recipe, Run, go_on, options, prepare, team

# Contrast below this, in 0..1, is as good as none: two levels. Asked for less, a network drew a grid on smooth skin.
CONTRAST_MIN = 0.008
# Side of the windows in which a grid shows, in input pixels.
GRID_WINDOW = 16
# Side of the windows that contrast is measured in, in output pixels; of those whose spectrum is taken.
WINDOW, SPECTRUM = 8, 32
# How far from a place in the spectrum its neighbours are, in bins: beyond what Hann's window spreads.
BESIDE = 3
LUMA = (0.299, 0.587, 0.114)


class Photos(Group):
    """A group in which no page is."""


class DetailRun(Run):
    """Half of the scenes are photographs and art, asked for contrast; the others as the restoring network sees them.

    What the condition changes stays as it was: both networks follow one condition, and mixing their weights mixes
    what they do.
    """

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        self.network.cond.requires_grad_(False)

    def groups(self, pictures: Pictures) -> list[tuple[Group, float]]:
        rank, ranks = team()
        recipe = self.recipe
        draw, count = np.random.default_rng([recipe.seed, self.step, rank]), recipe.scenes // ranks
        asked = (count + 1) // 2

        def some(pictures: Pictures, count: int) -> list[Group]:
            side = recipe.patch_side(self.step)
            return scene_groups(pictures, draw, count, recipe.crops, side, self.estimator, SCENES)

        photos = [Photos(**vars(group)) for group in some(pictures.textured_only(), asked)]
        return [(group, 1.0 / recipe.scenes) for group in [*photos, *some(pictures, count - asked)]]

    def loss(self, output: Tensor, group: Group) -> Tensor:
        loss = self.recipe.loss(self.step, output, group.clean)
        if not isinstance(group, Photos):
            return loss
        recipe, output = self.recipe, output.float()
        if recipe.comb:
            loss = loss + recipe.comb * comb(output, group.clean, recipe.scale).mean()
        return loss + recipe.contrast * lacking(output, group.clean, recipe.scale, recipe.grid)


def lacking(output: Tensor, clean: Tensor, scale: int, share: float) -> Tensor:
    """What is wrong with the contrast of RGB [n, 3, h, w], in factors of e: too little of it, or a grid for it.

    `share` is what a grid as strong as CONTRAST_MIN costs. At 10 it outweighs the contrast some twenty times and acts
    as more square error; at 0.25 no grid was seen either.
    """
    return too_smooth(output, clean) + share * grid(output - clean, scale)


def grid(error: Tensor, scale: int) -> Tensor:
    """Power of what `error` repeats with every input pixel, in units of CONTRAST_MIN: 0 where nothing does.

    Each of the scale² places within an input pixel has its mean over a window; where there is no grid they are equal.
    """
    places = functional.pixel_unshuffle(luma(error), scale)
    means = functional.avg_pool2d(places, min(GRID_WINDOW, *places.shape[2:]), GRID_WINDOW // 2)
    return (means - means.mean(dim=1, keepdim=True)).square().mean() / CONTRAST_MIN**2


def comb(output: Tensor, clean: Tensor, scale: int) -> Tensor:
    """How much more the spectrum of RGB [n, 3, h, w] stands out at the multiples of one period per input pixel than the
    original's does, in factors of e: [n], 0 where it does not.

    A grid whose sign follows the picture, dots in light places and holes in dark ones, has no mean for `grid` to see:
    the crisp look drew it on soft photographs at the four places within a pixel, and its gates held.
    """
    return (standing_out(output, scale) - standing_out(clean, scale)).clamp(min=0.0).mean(dim=1)


def standing_out(picture: Tensor, scale: int) -> Tensor:
    """Logarithms of the power at those frequencies over that beside them, [n, scale² - 1]; sides of at least 32."""
    plane, hann = luma(picture), torch.hann_window(SPECTRUM)
    windows = functional.unfold(plane, SPECTRUM, stride=SPECTRUM // 2).transpose(1, 2)
    windows = windows - windows.mean(dim=2, keepdim=True)
    # Each window counts alike, however strong its contrast, but for those that have none.
    windows = windows / (windows.square().mean(dim=2, keepdim=True) + CONTRAST_MIN**2).sqrt()
    shape = (len(plane), -1, SPECTRUM, SPECTRUM)
    spectra = torch.fft.fft2(windows.reshape(shape) * torch.outer(hann, hann).to(plane.device))
    power = (spectra.abs().square().mean(dim=1) + 1e-6).log()
    shifts = [(y, x) for y in (-BESIDE, 0, BESIDE) for x in (-BESIDE, 0, BESIDE) if (y, x) != (0, 0)]
    beside = torch.stack([power.roll(shift, dims=(1, 2)) for shift in shifts]).mean(dim=0)
    every = SPECTRUM // scale
    # Mostly held: free to raise the neighbours, a network drew noise round the grid; wholly held, it blurred.
    beside = torch.lerp(beside, beside.detach(), 0.7)
    return (power - beside)[:, ::every, ::every].flatten(1)[:, 1:]


def luma(picture: Tensor) -> Tensor:
    return functional.conv2d(picture, picture.new_tensor(LUMA).view(1, 3, 1, 1))


def too_smooth(output: Tensor, clean: Tensor) -> Tensor:
    """Mean distance of the logarithms of local contrast, over three bands and all windows; 0 where all are equal."""
    found = [(one - other).abs().mean() for one, other in zip(contrasts(output), contrasts(clean), strict=True)]
    return torch.stack(found).mean()


def contrasts(picture: Tensor) -> list[Tensor]:
    """Of RGB [n, 3, h, w]: of each band the logarithm of its deviation in every window, overlapping by half."""
    plane, found = luma(picture), []
    for side in (3, 5, 9):
        smooth = functional.avg_pool2d(plane, side, 1, side // 2, count_include_pad=False)
        power = functional.avg_pool2d((plane - smooth).square(), WINDOW, WINDOW // 2)
        found.append((power + CONTRAST_MIN**2).log() * 0.5)
        plane = smooth
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with ATTRIBUTION.tsv and its pictures")
    arguments = parser.parse_args()
    recipe = prepare(arguments)
    pictures = Pictures(arguments.data, arguments.runs / "cache", recipe.scale, recipe.pages, arguments.device)
    go_on(DetailRun(recipe, arguments.device, arguments.compile), pictures, arguments)


if __name__ == "__main__":
    main()
