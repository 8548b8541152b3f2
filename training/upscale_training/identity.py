"""Whose face it is, by two old descriptors that no one trained: local binary patterns and oriented gradients.

Good enough to tell one person's portraits from another's when both are of one size and place; here it answers
whether an enlarged face is still nearest to the portrait that it was made from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .evaluate import luma
from .restore_bed import softened

# Cells that a descriptor counts in, across and down.
CELLS = (7, 8)
ORIENTATIONS = 9
# Patterns compare neighbours to the last bit: on smooth skin they are those of grain and blocks. Smoothed by a pixel,
# 111 faces behind JPEG 30 (2x, without face_enhance) are .188 from the next person in the mean, the nearest .074; not
# smoothed they are .135, and one is taken for another.
SMOOTHED = 1.0


def rank_one(gallery: list[NDArray], probes: list[NDArray]) -> float:
    """The share of probes whose nearest portrait in the gallery is their own; both lists in the same order."""
    return float((margins(gallery, probes, sigma=0.0) > 0.0).mean())


def margins(gallery: list[NDArray], probes: list[NDArray], sigma: float = SMOOTHED) -> NDArray:
    """By how much each probe is more like its own portrait than like the next one, all smoothed by `sigma` pixels."""
    known = np.stack([describe(picture, sigma) for picture in gallery])
    alike = np.stack([describe(picture, sigma) for picture in probes]) @ known.T
    own = alike.diagonal().copy()
    np.fill_diagonal(alike, -np.inf)
    return own - alike.max(axis=1)


def describe(picture: NDArray[np.uint8], sigma: float = 0.0) -> NDArray:
    """A unit vector: cell by cell the patterns, then the gradients, each of length 1 before they are joined."""
    plane = luma(softened(picture, sigma)) if sigma else luma(picture)
    both = [unit(np.sqrt(patterns(plane))), unit(np.sqrt(gradients(plane)))]
    return unit(np.concatenate(both))


def unit(vector: NDArray) -> NDArray:
    # Around the mean of its own entries: what all faces share tells no one apart.
    vector = vector - vector.mean()
    return vector / (np.linalg.norm(vector) + 1e-12)


def patterns(plane: NDArray) -> NDArray:
    """Uniform local binary patterns of eight neighbours (Ojala et al. 2002), 59 bins a cell."""
    middle = plane[1:-1, 1:-1]
    ring = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    height, width = middle.shape
    bits = [plane[y : y + height, x : x + width] >= middle for y, x in ring]
    code = sum(bit.astype(np.uint16) << place for place, bit in enumerate(bits))
    return counted(UNIFORM[code], np.ones_like(middle), 59)


def gradients(plane: NDArray) -> NDArray:
    """Gradient directions without sign, weighted by their length (Dalal and Triggs 2005)."""
    down, right = np.gradient(plane)
    angle = np.arctan2(down, right) % np.pi
    return counted((angle / np.pi * ORIENTATIONS).astype(int) % ORIENTATIONS, np.hypot(down, right), ORIENTATIONS)


def counted(bins: NDArray, weights: NDArray, count: int) -> NDArray:
    """Weighted histograms of every cell, each of sum 1, one after the other."""
    height, width = bins.shape
    row = np.arange(height) * CELLS[1] // height
    column = np.arange(width) * CELLS[0] // width
    cell = row[:, None] * CELLS[0] + column
    sums = np.bincount((cell * count + bins).ravel(), weights.ravel(), CELLS[0] * CELLS[1] * count)
    sums = sums.reshape(-1, count)
    return (sums / (sums.sum(axis=1, keepdims=True) + 1e-12)).ravel()


def uniform_bins() -> NDArray:
    """Codes 0..255 to bins: the 58 with at most two changes round the ring each their own, the rest the last."""
    changes = [bin(code ^ ((code >> 1) | ((code & 1) << 7))).count("1") for code in range(256)]
    bins = np.full(256, 58)
    bins[[code for code in range(256) if changes[code] <= 2]] = np.arange(58)
    return bins


UNIFORM = uniform_bins()
