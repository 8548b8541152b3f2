"""A second network, which tells pictures that a network made from photographs: detail.py trains against it.

Two things keep it from asking for a grid. It has no strides: a convolution that skips pixels has gradients that repeat
with the skip, and an earlier critic of strided layers drew a grid of four pixels within nine minutes. And it sees each
pair at a random offset, so that what it pools never falls together with the source's pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

# Contrast in which detail counts half, and the side of the window it is measured in, in output pixels. Grain of less
# is not asked for: a network that draws the same for the same source can only draw a weave for it, and did.
GRAIN, WINDOW = 0.02, 9
CHANNELS = (32, 64, 96)
SLOPE = 0.2


class Critic(nn.Module):
    """RGB [n, 3, h, w] in 0..1 beside its bicubic base to one judgement for every 8 x 8 pixels, the higher the more
    like a photograph; weights under a spectral norm of 1 (Miyato et al. 2018)."""

    def __init__(self) -> None:
        super().__init__()
        pairs = zip((6, *CHANNELS), CHANNELS, strict=False)
        self.layers = nn.ModuleList(spectral_norm(nn.Conv2d(here, there, 3, padding=1)) for here, there in pairs)
        self.last = spectral_norm(nn.Conv2d(CHANNELS[-1], 1, 3, padding=1))

    def forward(self, picture: Tensor, base: Tensor, counts: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The judgements, and what each layer saw; `counts` as `counting` gives it."""
        # Detail is small beside the picture it lies on: seen as its distance from the base, ten times.
        x, seen = torch.cat([(picture - base) * counts * 10.0, base * 2.0 - 1.0], dim=1), []
        # Channels last: 0.6 of the time on a CPU.
        x = x.contiguous(memory_format=torch.channels_last)
        for layer in self.layers:
            x = functional.avg_pool2d(functional.leaky_relu(layer(x), SLOPE), 2)
            seen.append(x)
        return self.last(x), seen


def counting(clean: Tensor) -> Tensor:
    """How far detail counts at each place of RGB [n, 3, h, w], by the original's contrast: [n, 1, h, w] in 0..1."""
    gray = clean.mean(dim=1, keepdim=True)
    fine = gray - functional.avg_pool2d(gray, WINDOW, 1, WINDOW // 2, count_include_pad=False)
    power = functional.avg_pool2d(fine.square(), WINDOW, 1, WINDOW // 2, count_include_pad=False)
    return power / (power + GRAIN**2)


def shifted(pictures: list[Tensor], scale: int, draw: torch.Generator | None) -> list[Tensor]:
    """The same window of each, off by less than one source pixel on each axis; by the device's own generator if none
    is given. The offsets never come to the processor: a recorded step (recorded.py) then draws new ones."""
    device = pictures[0].device
    rows, columns = (
        torch.arange(length - scale, device=device) + torch.randint(scale, (1,), generator=draw, device=device)
        for length in pictures[0].shape[2:]
    )
    return [picture.index_select(2, rows).index_select(3, columns) for picture in pictures]


def preferred(one: Tensor, other: Tensor) -> Tensor:
    """What it costs that `one` is not judged above `other` at the same place (Jolicoeur-Martineau 2019)."""
    return functional.softplus(other - one).mean()


def unlike(seen: list[Tensor], original: list[Tensor]) -> Tensor:
    """Mean distance of what the layers saw, each in units of what they see in the original (Wang et al. 2018)."""
    pairs = zip(seen, original, strict=True)
    return torch.stack([(one - other).abs().mean() / (other.abs().mean() + 1e-3) for one, other in pairs]).mean()
