"""What stands out in the spectrum of a picture: the grids and weaves that networks draw, and their price."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

# Contrast, in 0..1, that counts as some: two levels.
CONTRAST_MIN = 0.008
# Side of the windows whose spectrum is taken, in output pixels.
SPECTRUM = 32
# How far from a place in the spectrum its neighbours are, in bins: beyond what Hann's window spreads.
BESIDE = 3
# By how much more than the original's a place stands out before it costs, in factors of e; where fine detail begins,
# in bins. Five faces of a network without a weave cost 0.007 to 0.012, with one 0.06 to 0.26.
LINE_MIN, FINE = 0.7, 4
# In `finest`: from which bins on contrast is coarse and finest, and the power in levels squared that counts as none.
COARSE, FINEST, FLAT = 3, 9, 4.0
# In `weaves`: from which bins on the finest detail is priced, at both scales what no source holds; how much of it, in
# levels squared, counts as none, and how far it may rise, in factors of e: on six photographs crisp layers without a
# weave raised it by .1 to .9 in the mean, such whose dots are seen by .2 to 4.
PRICED, PRICED_FLAT, PRICED_MIN = 8, 0.05, 1.0
LUMA = (0.299, 0.587, 0.114)


def comb(made: Tensor, clean: Tensor, scale: int) -> Tensor:
    """How much more a result stands out at the multiples of one period per input pixel than its original does, in
    factors of e: [n], 0 where it does not. Both as `standing_out` gives them.

    A grid whose sign follows the picture, dots in light places and holes in dark ones, has no mean for `grid` to see:
    the crisp look drew it on soft photographs at the four places within a pixel, and its gates held.
    """
    every = SPECTRUM // scale
    more = made - clean
    return more[:, ::every, ::every].flatten(1)[:, 1:].clamp(min=0.0).mean(dim=1)


def lines(made: Tensor, clean: Tensor) -> Tensor:
    """How far any place in a result's spectrum stands out further than in the original's: [n], the mean square in
    factors of e beyond LINE_MIN. Both as `standing_out` gives them.

    A weave has a period of its own, which `comb` does not look at: a face network drew a lattice of some three pixels,
    whose lines were 3.2 to 3.8 above what is beside them; in 24 originals no fine place was by more than 1.8.
    """
    more = (made - clean.clamp(min=0.0) - LINE_MIN).clamp(min=0.0)
    return (more.square() * fine_places(more.device)).mean(dim=(1, 2))


def finest(plane: Tensor, step: int = SPECTRUM // 2) -> Tensor:
    """How much of the contrast is of periods below 3.6 pixels beside those of 3.6 to 11, in every window of luma planes
    [n, h, w] in 0..1: [n, windows]. Where a network draws a weave there is little else.

    `comb` and `lines` look at the mean of all windows. A weave in a person's hair alone does not show in it: at 4x
    behind JPEG 30 restoring networks have at most .08 here, one whose weave is seen .2 to .3, one full of it .7 to 1.
    One of four pixels counts as coarse and has to be looked for by eye.
    """
    power = powers(plane, step) / FLAT
    fine, coarse = (
        (power * places).sum(dim=(2, 3)) for places in (band(FINEST, plane.device), band(COARSE, plane.device, FINEST))
    )
    return fine / (coarse + 1.0)


def weaves(made: Tensor, start: Tensor) -> Tensor:
    """How much more of periods below four pixels there is in RGB [n, 3, h, w] in 0..1 than in `start`, what the network
    that a training began with makes of the same: in factors of e beyond PRICED_MIN, in the mean of all windows, [n].

    Not beside the original, whose hair is as fine: where a critic asks for hair that the source does not show, dots
    are drawn instead. Nor as a share of the coarser contrast (`finest`), which a critic raises as well: on fur, what
    lies below four pixels had a fifth of the power of what lies between four and eight.
    """
    fine, before = (
        (powers(luma(one)[:, 0]) * band(PRICED, one.device)).sum(dim=(2, 3)) + PRICED_FLAT for one in (made, start)
    )
    return ((fine / before).log() - PRICED_MIN).clamp(min=0.0).mean(dim=1)


def powers(plane: Tensor, step: int = SPECTRUM // 2) -> Tensor:
    """The power in levels squared at each place of the half spectrum of every window of planes [n, h, w] in 0..1:
    [n, windows, SPECTRUM, 17]."""
    windows = plane.unfold(1, SPECTRUM, step).unfold(2, SPECTRUM, step).flatten(1, 2)
    windows = (windows - windows.mean(dim=(2, 3), keepdim=True)) * hann(plane.device)
    # Of both halves of the spectrum; the squares of Hann's window sum to 0.375 a place.
    unit = 2.0 * 255.0**2 / (SPECTRUM**2 * (0.375 * SPECTRUM) ** 2)
    return torch.view_as_real(torch.fft.rfft2(windows)).square().sum(dim=-1) * unit


@lru_cache(maxsize=8)
def band(least: int, device: torch.device, most: int = SPECTRUM) -> Tensor:
    """[SPECTRUM, 17]: 1 where a place of the half spectrum lies from bin `least` on and below `most`."""
    bins = torch.hypot(torch.fft.fftfreq(SPECTRUM, 1.0 / SPECTRUM)[:, None], torch.arange(SPECTRUM // 2 + 1.0)[None])
    return ((bins >= least) & (bins < most)).float().to(device)


@lru_cache(maxsize=8)
def hann(device: torch.device) -> Tensor:
    """[SPECTRUM, SPECTRUM], made once: a recorded step (recorded.py) copies nothing to its device."""
    window = torch.hann_window(SPECTRUM)
    return torch.outer(window, window).to(device)


@lru_cache(maxsize=8)
def fine_places(device: torch.device) -> Tensor:
    """[SPECTRUM, SPECTRUM]: 1 where the spectrum is finer than FINE bins, 0 where it is the picture's own slope."""
    bins = torch.fft.fftfreq(SPECTRUM, 1.0 / SPECTRUM)
    return (torch.hypot(bins[:, None], bins[None]) >= FINE).float().to(device)


def standing_out(picture: Tensor) -> Tensor:
    """Logarithm of the power at each place in the spectrum of RGB [n, 3, h, w] over that beside it: [n, SPECTRUM,
    SPECTRUM]. Sides of at least 32."""
    plane = luma(picture)[:, 0]
    # Views: `functional.unfold` copies picture by picture, which was four tenths of a GPU's step.
    windows = plane.unfold(1, SPECTRUM, SPECTRUM // 2).unfold(2, SPECTRUM, SPECTRUM // 2).flatten(1, 2)
    windows = windows - windows.mean(dim=(2, 3), keepdim=True)
    # Each window counts alike, however strong its contrast, but for those that have none.
    windows = windows / (windows.square().mean(dim=(2, 3), keepdim=True) + CONTRAST_MIN**2).sqrt()
    spectra = torch.fft.rfft2(windows * hann(plane.device))
    # Squares of both parts: by way of `abs` a root and its derivative took 8 % of a training step.
    power = (torch.view_as_real(spectra).square().sum(dim=-1).mean(dim=1) + 1e-6).log()
    power = torch.cat([power, mirrored(power)], dim=2)
    shifts = [(y, x) for y in (-BESIDE, 0, BESIDE) for x in (-BESIDE, 0, BESIDE) if (y, x) != (0, 0)]
    beside = torch.stack([power.roll(shift, dims=(1, 2)) for shift in shifts]).mean(dim=0)
    # Mostly held: free to raise the neighbours, a network drew noise round the grid; wholly held, it blurred.
    beside = torch.lerp(beside, beside.detach(), 0.7)
    return power - beside


def mirrored(half: Tensor) -> Tensor:
    """The columns that `rfft2` leaves out, of what is even: [n, SPECTRUM, SPECTRUM / 2 - 1] of [n, SPECTRUM, 17]."""
    return half[:, :, 1:-1].flip((1, 2)).roll(1, dims=1)


def luma(picture: Tensor) -> Tensor:
    red, green, blue = picture.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue)[:, None]
