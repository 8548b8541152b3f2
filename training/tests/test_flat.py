"""What is drawn where a photograph is flat."""

from __future__ import annotations

import math

import torch

from upscale_training.flat import speckle


def test_grain_counts_where_the_original_is_flat_alone():
    draw = torch.Generator().manual_seed(1)
    clean = torch.full((1, 3, 128, 256), 0.5)
    clean[..., 128:] = torch.rand((1, 1, 128, 128), generator=draw)
    grain = torch.randn((1, 1, 128, 256), generator=draw) * 2.0 / 255.0
    none, share = speckle(clean, clean)
    assert 0.35 < share < 0.5 and none < 1e-6
    power, _ = speckle(clean + grain, clean)
    # What a Gaussian of two pixels leaves of grain of two levels.
    assert 1.8 < math.sqrt(power / share) < 2.1
    textured = clean + grain * (torch.arange(256) >= 144)
    assert speckle(textured, clean)[0] < 1e-3 * power


def test_a_picture_without_flat_places_has_no_speckle():
    noise = torch.rand((1, 3, 64, 64), generator=torch.Generator().manual_seed(2))
    power, share = speckle(noise, noise)
    assert power == 0.0 and share == 0.0
