"""What happens to pictures before they reach us, as batched tensor operations that run alike on CPU and GPU.

Every function takes and gives [n, 3, h, w] in 0..1. Random draws are made by the caller (see data.py): here
the same arguments always give the same picture.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .condition import CHROMA_TABLE, LUMA_TABLE, quality_table
from .resize import resize_matrix

# In the order of the numbers that `shrink` takes.
KERNELS = ("bicubic", "lanczos3", "box", "bilinear")
# Input pixels that a shrunk patch loses at each side, where the kernels would look past the patch.
MARGIN = 4


def round_8bit(picture: Tensor) -> Tensor:
    """To the 256 levels that a file can hold, halves up."""
    return (picture.clamp(0.0, 1.0) * 255.0 + 0.5).floor() / 255.0


@lru_cache(maxsize=64)
def shrinking(size: int, scale: int, device: str) -> Tensor:
    """[kernels, size, (size + 2 MARGIN) scale]: the matrices of one axis, without the outputs of the margin."""
    whole = size + 2 * MARGIN
    matrices = [torch.from_numpy(resize_matrix(whole * scale, whole, kernel)) for kernel in KERNELS]
    return torch.stack(matrices)[:, MARGIN:-MARGIN].float().to(device)


def shrink(clean: Tensor, kernels: Tensor, scale: int) -> Tensor:
    """Antialiased shrinking by KERNELS[kernels[i]] with a margin of MARGIN outputs cut off; not rounded."""
    size = clean.shape[-1] // scale - 2 * MARGIN
    chosen = shrinking(size, scale, str(clean.device))[kernels]
    return chosen[:, None] @ clean @ chosen[:, None].transpose(-1, -2)


def blur(picture: Tensor, sigma: Tensor, reach: int = 3) -> Tensor:
    """A Gaussian of `sigma` [n] pixels, `reach` taps to each side; 0 leaves a picture [n, channels, h, w] as it is."""
    steps = torch.arange(-reach, reach + 1, device=picture.device, dtype=picture.dtype)
    taps = torch.exp(-0.5 * (steps / sigma.clamp(min=1e-3)[:, None]) ** 2)
    taps = taps / taps.sum(1, keepdim=True)
    planes = picture.shape[0] * picture.shape[1]
    rows = taps.repeat_interleave(picture.shape[1], 0)
    flat = functional.pad(picture, [reach] * 4, mode="reflect").flatten(0, 1)[None]
    flat = functional.conv2d(flat, rows[:, None, :, None], groups=planes)
    return functional.conv2d(flat, rows[:, None, None, :], groups=planes).reshape(picture.shape)


def noise(picture: Tensor, sigma: Tensor, drawn: Tensor) -> Tensor:
    """Adds `drawn` (normal, the shape of `picture`) times `sigma` [n], in levels of 255."""
    return picture + drawn * (sigma / 255.0)[:, None, None, None]


def normal(draw: np.random.Generator, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """White noise of deviation 1: drawn where it is used, for a GPU waits long for a processor's."""
    if device.type == "cpu":
        return torch.from_numpy(draw.standard_normal(shape, np.float32))
    source = torch.Generator(device).manual_seed(int(draw.integers(1 << 62)))
    return torch.randn(shape, generator=source, device=device)


@lru_cache(maxsize=8)
def cosines(device: str) -> Tensor:
    """The orthonormal DCT-II of 8 samples as a matrix."""
    k, x = torch.arange(8, dtype=torch.float64)[:, None], torch.arange(8, dtype=torch.float64)
    matrix = torch.cos((2.0 * x + 1.0) * k * torch.pi / 16.0) * 0.5
    matrix[0] = 8.0**-0.5
    return matrix.float().to(device)


def quantise(plane: Tensor, table: Tensor) -> Tensor:
    """Planes [n, c, h, w] of 0..255 through the 8x8 DCT, rounding to steps of `table` [n, 8, 8], and back."""
    n, c, height, width = plane.shape
    dct, steps = cosines(str(plane.device)), table[:, None, None, None]
    blocks = (plane - 128.0).reshape(n, c, height // 8, 8, width // 8, 8).transpose(3, 4)
    coefficients = dct @ blocks @ dct.T
    back = dct.T @ ((coefficients / steps).round() * steps) @ dct
    return (back.transpose(3, 4).reshape(n, c, height, width) + 128.0).round().clamp(0.0, 255.0)


def halve(plane: Tensor) -> Tensor:
    """4:2:0: the mean of each 2x2, as libjpeg shrinks colour."""
    return functional.avg_pool2d(plane, 2).add(0.25).floor()


def double(plane: Tensor) -> Tensor:
    """Back to full size by the triangle filter that libjpeg calls fancy upsampling."""
    for axis in (2, 3):
        near, size = plane, plane.shape[axis]
        before = torch.cat([near.narrow(axis, 0, 1), near.narrow(axis, 0, size - 1)], axis)
        after = torch.cat([near.narrow(axis, 1, size - 1), near.narrow(axis, size - 1, 1)], axis)
        pairs = torch.stack([0.75 * near + 0.25 * before, 0.75 * near + 0.25 * after], axis + 1)
        plane = pairs.flatten(axis, axis + 1)
    return plane.round()


def jpeg(picture: Tensor, quality: Tensor, halved: Tensor) -> Tensor:
    """A JPEG round trip at libjpeg `quality` [n], with halved colour where `halved` [n]; sides multiples of 16."""
    luma = quality_table(LUMA_TABLE.to(picture.device), quality)
    chroma = quality_table(CHROMA_TABLE.to(picture.device), quality)
    return jpeg_by_tables(picture, luma, chroma, halved)


def jpeg_by_tables(picture: Tensor, luma: Tensor, chroma: Tensor, halved: Tensor) -> Tensor:
    """The same with quantisation tables [n, 8, 8] given."""
    if picture.shape[2] % 16 or picture.shape[3] % 16:
        raise ValueError(f"{tuple(picture.shape)}: the sides must be multiples of 16")
    red, green, blue = (round_8bit(picture) * 255.0).unbind(1)
    y = (0.299 * red + 0.587 * green + 0.114 * blue).round()
    # As libjpeg rounds them, from the unrounded sums.
    cb = (128.0 - 0.168735892 * red - 0.331264108 * green + 0.5 * blue).round().clamp(0.0, 255.0)
    cr = (128.0 + 0.5 * red - 0.418687589 * green - 0.081312411 * blue).round().clamp(0.0, 255.0)
    colour, brightness = torch.stack([cb, cr], 1), quantise(y[:, None], luma)
    whole, half = quantise(colour, chroma), double(quantise(halve(colour), chroma))
    cb, cr = (torch.where(halved[:, None, None, None], half, whole) - 128.0).unbind(1)
    y = brightness[:, 0]
    rgb = [y + 1.402 * cr, y - 0.344136286 * cb - 0.714136286 * cr, y + 1.772 * cb]
    return round_8bit(torch.stack(rgb, 1) / 255.0)


def cut(picture: Tensor, top: Tensor, left: Tensor, side: int) -> Tensor:
    """Square windows of `side` at [n] corners."""
    steps = torch.arange(side, device=picture.device)
    rows, columns = top[:, None] + steps, left[:, None] + steps
    index = torch.arange(len(picture), device=picture.device)[:, None, None]
    return picture.permute(0, 2, 3, 1)[index, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
