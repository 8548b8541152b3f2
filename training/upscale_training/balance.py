"""The service's balance of colours (`upscale_image/src/balance.rs`): the slow difference between source and result is
given back to the result. Gates on colours judge results after it, as customers get them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from .data import as_batch
from .evaluate import Enlarger
from .resize import to_8bit

# As in balance.rs, which says where the numbers are from.
RADIUS, EDGE, DOUBT, STEP_MAX, LEVEL = 8, 0.05, 0.02, 0.1, 1.0 / 255.0


def balanced(source: NDArray[np.uint8], made: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    """`made`, [scale * h, scale * w, 3], with the colours of `source`, [h, w, 3]; both in levels."""
    source, made = as_batch([source]), as_batch([made])
    share = smoothness(source)
    difference = source - functional.avg_pool2d(made, scale)
    full = (RADIUS + 1) ** 2
    correction = around(difference * share) / (around(share) + DOUBT * full * full)
    correction = correction**3 / (correction.square() + LEVEL**2)
    correction = functional.interpolate(correction, scale_factor=scale, mode="bilinear", align_corners=False)
    made = made + correction.clamp(-STEP_MAX, STEP_MAX)
    for level, pure in ((1.0, source == 1.0), (0.0, source == 0.0)):
        there = pure.all(dim=1, keepdim=True).float()
        # All around it as well; beyond the picture everything is.
        there = 1.0 - functional.max_pool2d(1.0 - there, 3, 1, 1)
        there = functional.interpolate(there, scale_factor=scale, mode="nearest")
        made = torch.where(there > 0.0, level, made)
    return to_8bit(made[0].permute(1, 2, 0).numpy())


def served(enlarge: Enlarger) -> Enlarger:
    """With the colours that the service gives back."""
    return lambda small, scale: balanced(small, enlarge(small, scale), scale)


def smoothness(source: Tensor) -> Tensor:
    """[1, 1, h, w]: 1 where the source is smooth, less the more it differs from its four neighbours."""
    near = functional.pad(source, (1, 1, 1, 1), mode="replicate")
    others = near[:, :, 1:-1, :-2], near[:, :, 1:-1, 2:], near[:, :, :-2, 1:-1], near[:, :, 2:, 1:-1]
    most = torch.stack([(source - other).abs() for other in others]).amax(dim=(0, 2))[:, None]
    return 1.0 / (1.0 + (most / EDGE).square())


def around(plane: Tensor) -> Tensor:
    """Sums under a triangle both ways; nothing beyond the edges."""
    weights = RADIUS + 1.0 - torch.arange(-RADIUS, RADIUS + 1.0).abs()
    kernel = torch.outer(weights, weights).expand(plane.shape[1], 1, -1, -1)
    return functional.conv2d(plane, kernel, padding=RADIUS, groups=plane.shape[1])
