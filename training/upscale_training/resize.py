"""MATLAB-compatible resizing in double precision: the yardstick of the benchmark and the network's base.

Half-pixel centres, the kernel widened by the factor when shrinking (antialias), mirrored edges, as in
MATLAB's `imresize`. `torch.nn.functional.interpolate` and OpenCV use a = -0.75 and cannot stand in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


def cubic(x: NDArray) -> NDArray:
    """Keys' cubic convolution, a = -0.5 (Keys 1981), support 4."""
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1.0, near, np.where(x <= 2.0, far, 0.0))


def lanczos3(x: NDArray) -> NDArray:
    """Windowed sinc with three lobes, support 6."""
    return np.where(np.abs(x) < 3.0, np.sinc(x) * np.sinc(x / 3.0), 0.0)


def box(x: NDArray) -> NDArray:
    """The mean of the pixels under an output pixel, support 1."""
    return np.where((x >= -0.5) & (x < 0.5), 1.0, 0.0)


def triangle(x: NDArray) -> NDArray:
    """Linear interpolation, support 2."""
    return np.maximum(1.0 - np.abs(x), 0.0)


KERNELS: dict[str, tuple[Callable[[NDArray], NDArray], float]] = {
    "bicubic": (cubic, 4.0),
    "lanczos3": (lanczos3, 6.0),
    "box": (box, 1.0),
    "bilinear": (triangle, 2.0),
}


def resize(picture: NDArray, height: int, width: int, kernel: str = "bicubic") -> NDArray:
    """`picture` [h, w, c], any type, to float64 [height, width, c]; neither clamped nor rounded."""
    rows = resize_matrix(picture.shape[0], height, kernel)
    columns = resize_matrix(picture.shape[1], width, kernel)
    return columns @ np.tensordot(rows, picture.astype(np.float64), axes=(1, 0))


def resize_8bit(picture: NDArray[np.uint8], height: int, width: int, kernel: str = "bicubic") -> NDArray[np.uint8]:
    """The same, clamped and rounded half up to 8 bits, as MATLAB stores it."""
    return to_8bit(resize(picture, height, width, kernel) / 255.0)


def to_8bit(picture: NDArray) -> NDArray[np.uint8]:
    """Values in 0..1 to 0..255, halves rounded up."""
    return np.floor(np.clip(picture, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


@lru_cache(maxsize=256)
def resize_matrix(size_in: int, size_out: int, kernel: str) -> NDArray:
    """Matrix [size_out, size_in] of one axis; each row sums to 1."""
    shape, support = KERNELS[kernel]
    factor = size_out / size_in
    stretch = max(1.0, 1.0 / factor)
    centre = (np.arange(size_out) + 0.5) / factor - 0.5
    taps = int(np.ceil(support * stretch)) + 2
    left = np.floor(centre - support * stretch / 2.0).astype(int)
    index = left[:, None] + np.arange(taps)[None, :]
    weight = shape((centre[:, None] - index) / stretch)
    weight /= weight.sum(axis=1, keepdims=True)
    mirrored = np.mod(index, 2 * size_in)
    mirrored = np.where(mirrored < size_in, mirrored, 2 * size_in - 1 - mirrored)
    matrix = np.zeros((size_out, size_in))
    np.add.at(matrix, (np.arange(size_out)[:, None], mirrored), weight)
    return matrix


def cubic_phases(scale: int) -> NDArray:
    """Taps [scale, 5] of an enlargement by `scale`: phase p reads the inputs i-2 .. i+2 for output i*scale+p."""
    offset = (np.arange(scale) + 0.5) / scale - 0.5
    return cubic(offset[:, None] - np.arange(-2, 3)[None, :])
