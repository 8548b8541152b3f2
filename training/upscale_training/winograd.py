"""The layers from C channels to C for training on a CPU: Winograd's F(4x4, 3x3), a fourth of the multiplies.

winograd.cpp does the work, on one thread; the system's C++ compiler builds it at first use. network.py's `Plain` is
the definition, and the tests hold values and gradients against it in double precision.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from .network import Plain

# What winograd.cpp is compiled for: channels, and how many taps are fused.
CHANNELS, TAPS = (32, 48, 64), 4


class Winograd:
    """The arithmetic of network.py's `Plain`, faster where it can be; the rest is left to `Plain`."""

    @staticmethod
    def convolve(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        if not fits(x) or weight.shape[:2] != (x.shape[1], x.shape[1]):
            return Plain.convolve(x, weight, bias, relu)
        return Convolution.apply(x, weight, bias, relu)

    @staticmethod
    def fuse(taps: list[Tensor], weight: Tensor, bias: Tensor) -> Tensor:
        channels = taps[0].shape[1]
        if not fits(taps[0]) or len(taps) != TAPS:
            return Plain.fuse(taps, weight, bias)
        return Fusion.apply(weight.view(channels, TAPS, channels).permute(1, 2, 0), bias, *taps)


def fits(x: Tensor) -> bool:
    """Whether winograd.cpp can take [n, C, h, w]: float32 on a CPU, sides that are multiples of 4."""
    shape = x.shape[1] in CHANNELS and x.shape[2] % 4 == 0 and x.shape[3] % 4 == 0
    return shape and x.device.type == "cpu" and x.dtype == torch.float32


class Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        x, bias = channels_last(x), bias.contiguous()
        y, u = torch.empty_like(x), transformed(weight.permute(2, 3, 1, 0))
        n, channels, h, w = x.shape
        library().winograd_forward(*pointers(x, u, bias, y), int(relu), n, h, w, channels)
        ctx.save_for_backward(x, weight, *([y] if relu else []))
        return y

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight, *outputs), g = ctx.saved_tensors, channels_last(g)
        n, channels, h, w = x.shape
        dx, du, dbias = torch.empty_like(x), x.new_zeros(36, channels, channels), x.new_zeros(channels)
        turned, y = transformed(weight.permute(2, 3, 0, 1)), outputs[0] if outputs else None
        library().winograd_backward(*pointers(x, turned, y, g, dx, du, dbias), n, h, w, channels)
        dw = x.new_empty(3, 3, channels, channels)
        library().filters_backward(*pointers(du, dw), ctypes.c_long(channels * channels))
        return dx, dw.permute(3, 2, 0, 1), dbias, None


def transformed(weight: Tensor) -> Tensor:
    """[3, 3, C, C] to [36, C, C]: what the taps are at the points 0, 1, -1, 2, -2 and infinity, both ways."""
    weight = weight.contiguous()
    u = weight.new_empty(36, *weight.shape[2:])
    library().filters(*pointers(weight, u), ctypes.c_long(u[0].numel()))
    return u


class Fusion(torch.autograd.Function):
    """Of the weights [4, inputs, outputs] and four taps."""

    @staticmethod
    def forward(ctx, u: Tensor, bias: Tensor, *taps: Tensor) -> Tensor:
        u, bias, taps = u.contiguous(), bias.contiguous(), [channels_last(tap) for tap in taps]
        y = torch.empty_like(taps[0])
        library().fuse_forward(*pointers(*taps, u, bias, y), *rows(y))
        ctx.save_for_backward(u, *taps)
        return y

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor, ...]:
        (u, *taps), g = ctx.saved_tensors, channels_last(g)
        d_taps, du, dbias = [torch.empty_like(tap) for tap in taps], torch.zeros_like(u), u.new_zeros(u.shape[2])
        turned = u.transpose(1, 2).contiguous()
        library().fuse_backward(*pointers(*taps, turned, g, *d_taps, du, dbias), *rows(g))
        return du, dbias, *d_taps


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def rows(x: Tensor) -> tuple[ctypes.c_long, int]:
    return ctypes.c_long(x.numel() // x.shape[1]), x.shape[1]


def pointers(*tensors: Tensor | None) -> list[ctypes.c_void_p]:
    """Of tensors that the caller keeps alive; winograd.cpp reads 64 bytes at once, as PyTorch aligns what it allots."""
    found = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    if any(address is not None and address % 64 for address in found):
        raise ValueError("a view into another tensor does not begin at a multiple of 64 bytes")
    return [ctypes.c_void_p(address) for address in found]


@functools.cache
def library() -> ctypes.CDLL:
    """winograd.cpp, compiled for the processor that this is: 3 s with g++ 12."""
    source = Path(__file__).with_suffix(".cpp")
    # Without contraction no product and sum become one operation; -ffast-math would change PyTorch's denormals too.
    options = ["-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
    with tempfile.TemporaryDirectory(prefix="winograd-") as folder:
        built = Path(folder) / "winograd.so"
        subprocess.run([os.environ.get("CXX", "c++"), *options, str(source), "-o", str(built)], check=True)
        return ctypes.CDLL(str(built))
