"""Muon (Jordan et al. 2024): momentum made orthogonal, so that every direction of a convolution learns at one rate.

Used for the convolutions inside the network; biases, the first and the last layer and the condition take Adam.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

# The quintic of the paper: singular values of 0..1 go to about 0.7..1.2 in five rounds.
A, B, C = 3.4445, -4.7750, 2.0315
ROUNDS = 5
MOMENTUM = 0.95


def orthogonal(matrices: Tensor) -> Tensor:
    """The nearest matrices with singular values near 1, for [..., rows, columns]."""
    flipped = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if flipped else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-12)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x.mT if flipped else x


class Muon(torch.optim.Optimizer):
    """For weights of two or more dimensions, taken as [outputs, everything else]; `lr` as Adam's would be chosen."""

    def __init__(self, parameters: Iterable[Tensor], lr: float | Tensor) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Weights of one shape together: one by one they are 600 small kernels, as long as a GPU's whole step."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = {}
            for weight in group["params"]:
                alike.setdefault(weight.shape, []).append(weight)
            for weights in alike.values():
                self.move(weights, group["lr"])

    def move(self, weights: list[Tensor], rate: float | Tensor) -> None:
        """Weights of one shape."""
        for one in weights:
            if one not in self.state:
                self.state[one]["momentum"] = torch.zeros_like(one)
        momenta = [self.state[one]["momentum"] for one in weights]
        gradients = [one.grad for one in weights]
        torch._foreach_lerp_(momenta, gradients, 1.0 - MOMENTUM)
        ahead = torch.stack(torch._foreach_lerp(gradients, momenta, MOMENTUM)).flatten(2)
        # The mean square of an orthogonal matrix is 1 / its longer side; 0.2 is what Adam's steps come to (Liu et al.
        # 2025), so that one learning rate serves both.
        step = 0.2 * max(ahead.shape[1:]) ** 0.5
        moves = orthogonal(ahead).view(len(weights), *weights[0].shape) * (-rate * step)
        torch._foreach_add_(weights, moves.unbind())
