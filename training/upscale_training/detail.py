"""Trains crisper detail from a finished network: `python -m upscale_training.detail CONFIG --data FOLDER`.

A network trained for the smallest square error makes textures too smooth: of all that could be there it draws the
mean. Here it is asked as well for as much local contrast as the photograph has, in three bands of fine detail; never
on pages of text, where contrast that is not in the file would be another letter. What repeats with every input pixel
has contrast too and costs the network nothing to draw: it is punished by itself. No second network judges.
detail_gates.py says whether what comes of it may ship.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from .data import Pictures
from .mixture import Draw, Group, Mixture, clean_group, damaged_group
from .train import Plan, Run, go_on, options, prepare

# Contrast below this, in 0..1, is as good as none: two levels. Asked for less, a network drew a grid on smooth skin.
CONTRAST_MIN = 0.008
# What a grid as strong as CONTRAST_MIN costs, in factors of e of contrast.
GRID = 10.0
# Side of the windows in which a grid shows, in input pixels.
GRID_WINDOW = 16
# Side of the windows that contrast is measured in, in output pixels.
WINDOW = 8
LUMA = (0.299, 0.587, 0.114)


class Photos(Group):
    """A group in which no page is."""


def photos_only(pictures: Pictures) -> Pictures:
    photos = copy.copy(pictures)
    photos.pages = None
    return photos


def clean_photos(pictures: Pictures, draw: Draw, size: int, side: int, shares: Mixture) -> Group:
    return Photos(**vars(clean_group(photos_only(pictures), draw, size, side, shares)))


def damaged_photos(pictures: Pictures, draw: Draw, size: int, side: int, shares: Mixture) -> Group:
    return Photos(**vars(damaged_group(photos_only(pictures), draw, size, side, shares)))


class DetailRun(Run):
    """Two groups of photographs alone, clean and damaged, beside two as every network sees them."""

    def plan(self) -> Plan:
        clean, damaged = self.recipe.batch // 2, self.recipe.damaged // 2
        return [(clean_photos, clean), (damaged_photos, damaged), (clean_group, clean), (damaged_group, damaged)]

    def loss(self, output: Tensor, group: Group) -> Tensor:
        loss = self.recipe.loss(self.step, output, group.clean)
        if not isinstance(group, Photos):
            return loss
        return loss + self.recipe.contrast * lacking(output.float(), group.clean, self.recipe.scale)


def lacking(output: Tensor, clean: Tensor, scale: int) -> Tensor:
    """What is wrong with the contrast of RGB [n, 3, h, w], in factors of e: too little of it, or a grid for it."""
    return too_smooth(output, clean) + GRID * grid(output - clean, scale)


def grid(error: Tensor, scale: int) -> Tensor:
    """Power of what `error` repeats with every input pixel, in units of CONTRAST_MIN: 0 where nothing does.

    Each of the scale² places within an input pixel has its mean over a window; where there is no grid they are equal.
    """
    places = functional.pixel_unshuffle(luma(error), scale)
    means = functional.avg_pool2d(places, min(GRID_WINDOW, *places.shape[2:]), GRID_WINDOW // 2)
    return (means - means.mean(dim=1, keepdim=True)).square().mean() / CONTRAST_MIN**2


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
