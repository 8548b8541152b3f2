"""How natural a picture looks by itself: NIQE (Mittal, Soundararajan and Bovik 2013), fitted to our own photographs.

Brightness is divided by its local contrast; in natural pictures what is left and the products of neighbours follow
generalised Gaussians. How far a picture's parameters lie from those of good photographs is its mark: lower is better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from .evaluate import luma
from .resize import resize_8bit

# Side of the squares that parameters are taken from, in pixels; half of it in the halved picture.
SIDE = 96
# Of the fitted photographs only squares with this share of the sharpest one's contrast count.
SHARP = 0.75
NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1))

SHAPES = np.arange(0.2, 10.0, 0.001)
LOG_GAMMA = np.array([[lgamma(n / shape) for shape in SHAPES] for n in (1, 2, 3)])
# E|x|^2 / E x^2 of a generalised Gaussian, by shape; rises with it.
RATIOS = np.exp(2.0 * LOG_GAMMA[1] - LOG_GAMMA[0] - LOG_GAMMA[2])


@dataclass(frozen=True)
class Natural:
    """Mean [36] and covariance [36, 36] of the parameters of good photographs."""

    mean: NDArray
    covariance: NDArray

    def distance(self, picture: NDArray[np.uint8]) -> float:
        """NIQE of a picture of at least two squares."""
        found, _ = parameters(picture)
        if len(found) < 2:
            raise ValueError(f"{picture.shape[:2]} pixels hold {len(found)} squares of {SIDE}, two are needed")
        away = self.mean - found.mean(axis=0)
        spread = (self.covariance + np.cov(found, rowvar=False)) / 2.0
        return float(np.sqrt(away @ np.linalg.pinv(spread) @ away))


def fit(photographs: Iterable[NDArray[np.uint8]]) -> Natural:
    rows = []
    for photograph in photographs:
        found, contrast = parameters(photograph)
        rows.append(found[contrast > SHARP * contrast.max()])
    every = np.concatenate(rows)
    return Natural(every.mean(axis=0), np.cov(every, rowvar=False))


def parameters(picture: NDArray[np.uint8]) -> tuple[NDArray, NDArray]:
    """[n, 36] of the whole squares, and each one's mean contrast."""
    height, width = (length // SIDE * SIDE for length in picture.shape[:2])
    if not height or not width:
        raise ValueError(f"{picture.shape[:2]} pixels hold no square of {SIDE}")
    whole = picture[:height, :width]
    halved = resize_8bit(whole, height // 2, width // 2)
    plane, contrast = normalised(luma(whole))
    both = [of_squares(squares(plane, SIDE)), of_squares(squares(normalised(luma(halved))[0], SIDE // 2))]
    return np.concatenate(both, axis=1), squares(contrast, SIDE).mean(axis=(1, 2))


def normalised(plane: NDArray) -> tuple[NDArray, NDArray]:
    """(Y - mean) / (deviation + 1) under a Gaussian of 7 x 7, and the deviation."""
    mean = soft(plane)
    deviation = np.sqrt(np.abs(soft(plane * plane) - mean * mean))
    return (plane - mean) / (deviation + 1.0), deviation


def soft(plane: NDArray) -> NDArray:
    taps = np.exp(-(np.arange(-3, 4) ** 2) / (2.0 * (7.0 / 6.0) ** 2))
    taps /= taps.sum()
    windows = np.lib.stride_tricks.sliding_window_view
    padded = np.pad(plane, 3, mode="edge")
    return windows(windows(padded, 7, axis=0) @ taps, 7, axis=1) @ taps


def squares(plane: NDArray, side: int) -> NDArray:
    """[n, side, side], left to right, then down."""
    down, across = (length // side for length in plane.shape)
    return plane.reshape(down, side, across, side).swapaxes(1, 2).reshape(-1, side, side)


def of_squares(values: NDArray) -> NDArray:
    """[n, 18]: shape and width of the values, then shape, mean and both widths of the products of neighbours."""
    shape, left, right = asymmetric(values)
    columns = [shape, (left + right) / 2.0]
    for step in NEIGHBOURS:
        shape, left, right = asymmetric(values * np.roll(values, step, axis=(1, 2)))
        grow = np.exp([lgamma(2.0 / one) - lgamma(1.0 / one) for one in shape])
        columns += [shape, (right - left) * grow, left**2, right**2]
    return np.stack(columns, axis=1)


def asymmetric(values: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Shape and widths [n] of an asymmetric generalised Gaussian, by moments (Lasmar, Stitou, Berthoumieu 2009)."""
    flat = values.reshape(len(values), -1)

    def width(side: NDArray) -> NDArray:
        return np.sqrt((flat**2 * side).sum(axis=1) / np.maximum(side.sum(axis=1), 1) + 1e-12)

    left, right = width(flat < 0), width(flat > 0)
    skew = left / right
    ratio = np.abs(flat).mean(axis=1) ** 2 / (np.mean(flat**2, axis=1) + 1e-12)
    found = ratio * (skew**3 + 1.0) * (skew + 1.0) / (skew**2 + 1.0) ** 2
    shape = SHAPES[np.clip(np.searchsorted(RATIOS, found), 0, len(SHAPES) - 1)]
    scale = np.exp([(lgamma(1.0 / one) - lgamma(3.0 / one)) / 2.0 for one in shape])
    return shape, left * scale, right * scale
