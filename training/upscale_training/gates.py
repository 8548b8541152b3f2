"""Everything that weights must pass before they ship, in one command:

`python -m upscale_training.gates --weights FILE... --plain FILE... --folders FOLDER... [--out docs/quality.md]`
`--plain` are networks of the same scale that saw only clean pictures. PSNR as evaluate.py has it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from .bed import DAMAGES, Damage, Picture, conditions, drawn_sets
from .evaluate import ENDINGS, interpolate, luma, network_enlarger, psnr, read_clean, ssim
from .network import Network
from .weights import load_weights

INTRODUCTION = """# Quality of the networks

Written by `python -m upscale_training.gates` (training/README.md). PSNR on Y in decibels and SSIM on Y, 8 bits, a
border of the scale shaved; means over the pictures of a set. None of them was trained on. `text` and `graphics` are
pages drawn by code from seeds that training does not use. Inputs: shrunk by MATLAB's bicubic (`box`: by plain
means), then as named; JPEG is libjpeg's, 4:2:0; `JPEG twice` is 60, moved off its grid, and 80. **matched**, unknown
and mismatched are the condition input; mismatched is a clean file for a JPEG and JPEG 50 for a clean one. The
clean-only nets are the first two that shipped, of tier F, trained on clean pictures alone. JPEGs at 4x are those of
the `faithful` look; [the looks](looks.md) have their own table.

## Beside published networks
Set5, clean bicubic inputs, the papers' own figures; multiplies for an output of 1280x720, at 2x and 4x.

| network | multiplies (G) | 2x | 4x |
|---|---|---|---|
| bicubic | | 33.66 | 28.42 |
| SRCNN | 52.7 / 52.7 | 36.66 | 30.48 |
| FSRCNN | 6.0 / 4.6 | 37.00 | 30.72 |
{ours}
| VDSR | 612.6 / 612.6 | 37.53 | 31.35 |
| EDSR-baseline | 316.3 / 114.0 | 37.99 | 32.09 |
| IMDN | 158.8 / 40.9 | 38.00 | 32.21 |
| SwinIR-light | transformer | 38.14 | 32.44 |

The published networks know clean bicubic shrinking alone: on the JPEGs below they enlarge the blocks.

To look at, at 100 % and drawn by code (`upscale_training.contact`): [2x](quality-x2.png), [4x](quality-x4.png).
"""

# Decibels: issue 4's figures.
SET5_FLOOR = {2: 37.5, 4: 31.4}
CLEAN_LOSS_MAX = 0.25
JPEG_GAIN_MIN = 0.9
TEXT_GAIN_MIN = 3.0
# Two means of some twenty pictures that differ by less are the same.
EQUAL = 0.02

Table = dict[tuple[str, str], dict[str, float]]


@dataclass(frozen=True)
class Gate:
    """One demand: what is measured, what came out, what is asked (at least)."""

    name: str
    found: float
    asked: float

    @property
    def passed(self) -> bool:
        return self.found >= self.asked

    def row(self) -> str:
        return f"| {self.name} | {self.found:+.2f} | {self.asked:+.2f} | {'yes' if self.passed else '**no**'} |"


def scores(pictures: list[Picture], damage: Damage, network: Network, plain: Network | None) -> dict[str, float]:
    """Mean PSNR-Y of every method over `pictures`, and SSIM-Y of bicubic and of the matched condition."""
    scale, marks = network.architecture.scale, {}
    for picture in pictures:
        clean = picture[: len(picture) // scale * scale, : picture.shape[1] // scale * scale]
        small = damage.make(clean, scale)
        for name, enlarged in versions(small, damage, network, plain):
            one, other = (luma(whole)[scale:-scale, scale:-scale] for whole in (clean, enlarged))
            marks.setdefault(name, []).append(psnr(one, other))
            if name in ("bicubic", "matched"):
                marks.setdefault(f"{name} ssim", []).append(ssim(one, other))
    return {name: float(np.mean(found)) for name, found in marks.items()}


def versions(small: Picture, damage: Damage, network: Network, plain: Network | None) -> Iterator[tuple[str, Picture]]:
    scale = network.architecture.scale
    for kernel in ("bicubic", "lanczos3"):
        yield kernel, interpolate(kernel)(small, scale)
    for name, condition in conditions(damage).items():
        yield name, network_enlarger(network, condition)(small, scale)
    if plain:
        yield "plain", network_enlarger(plain)(small, scale)


def measure(sets: dict[str, list[Picture]], network: Network, plain: Network | None) -> Table:
    return {
        (name, damage.name): scores(pictures, damage, network, plain)
        for name, pictures in sets.items()
        for damage in DAMAGES
    }


def gates(found: Table, scale: int) -> list[Gate]:
    """The demands of issue 4 and of the design, for one scale."""
    demands = []
    for (name, damage), marks in found.items():
        where = f"{name}, {damage}"
        clean = damage in ("clean", "box")
        if name == "Set5" and damage == "clean":
            demands.append(Gate(f"{where}: PSNR-Y", marks["matched"], SET5_FLOOR[scale]))
        if name == "text" and damage == "clean" and scale == 2:
            demands.append(Gate(f"{where}: over bicubic", marks["matched"] - marks["bicubic"], TEXT_GAIN_MIN))
        if scale == 4 and damage in ("JPEG 75", "JPEG 50", "JPEG 30") and name not in ("text", "graphics"):
            demands.append(Gate(f"{where}: over bicubic", marks["matched"] - marks["bicubic"], JPEG_GAIN_MIN))
        if clean and "plain" in marks:
            demands.append(
                Gate(f"{where}: over the clean-only net", marks["matched"] - marks["plain"], -CLEAN_LOSS_MAX)
            )
        if not clean:
            demands.append(Gate(f"{where}: matched over unknown", marks["matched"] - marks["unknown"], -EQUAL))
        if not clean and "plain" in marks:
            gain = marks["unknown"] - marks["plain"]
            demands.append(Gate(f"{where}: unknown over the clean-only net", gain, -EQUAL))
        demands.append(Gate(f"{where}: mismatched over bicubic", marks["mismatched"] - marks["bicubic"], 0.0))
    return demands


def table(found: Table) -> str:
    rows = [
        "| set | input | bicubic | Lanczos3 | clean-only net | unknown | mismatched | **matched** | gain "
        "| SSIM bicubic → matched |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, damage), m in found.items():
        plain = f"{m['plain']:.2f}" if "plain" in m else "-"
        rows.append(
            f"| {name} | {damage} | {m['bicubic']:.2f} | {m['lanczos3']:.2f} | {plain} | {m['unknown']:.2f} "
            f"| {m['mismatched']:.2f} | **{m['matched']:.2f}** | {m['matched'] - m['bicubic']:+.2f} "
            f"| {m['bicubic ssim']:.3f} → {m['matched ssim']:.3f} |"
        )
    return "\n".join(rows)


def report(found: Table, name: str, scale: int) -> str:
    demands = gates(found, scale)
    missed = [demand for demand in demands if not demand.passed]
    head = f"## {name}\n\n{table(found)}\n\n{len(demands) - len(missed)} of {len(demands)} gates passed."
    if not missed:
        return head
    rows = "\n".join(demand.row() for demand in missed)
    return f"{head} Missed:\n\n| gate | found | asked | passed |\n|---|---|---|---|\n{rows}"


def page(measured: list[tuple[str, int, Table]], networks: list[Network]) -> str:
    """docs/quality.md: the published figures with ours among them, then a report for each network."""
    set5 = [found.get(("Set5", "clean"), {}).get("matched") for _, _, found in measured]
    names = ", ".join(name for name, _, _ in measured)
    cost = " / ".join(f"{multiplies(network):.1f}" for network in networks)
    ours = f"| **{names}** | {cost} | " + " | ".join("-" if one is None else f"**{one:.2f}**" for one in set5) + " |"
    reports = [report(found, name, scale) for name, scale, found in measured]
    return "\n\n".join([INTRODUCTION.format(ours=ours), *reports])


def multiplies(network: Network) -> float:
    """Billions for an output of 1280x720."""
    weights = sum(layer.weight.numel() for layer in network.modules() if isinstance(layer, nn.Conv2d))
    return weights * 1280 * 720 / network.architecture.scale**2 / 1e9


def read_sets(folders: list[Path], most: int, pages: int) -> dict[str, list[Picture]]:
    sets = {}
    for folder in folders:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
        sets[folder.name] = [read_clean(path, 1) for path in paths[:most]]
    return sets | (drawn_sets(pages) if pages else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, nargs="+", required=True, help="2x first, then 4x")
    parser.add_argument("--plain", type=Path, nargs="*", default=[])
    parser.add_argument("--folders", type=Path, nargs="*", default=[])
    parser.add_argument("--most", type=int, default=1000, help="pictures of a folder, at most")
    parser.add_argument("--pages", type=int, default=4, help="drawn pages of each kind")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sets = read_sets(arguments.folders, arguments.most, arguments.pages)
    plains = {network.architecture.scale: network for network, _ in map(load_weights, arguments.plain)}
    measured, networks = [], []
    for network, metadata in map(load_weights, arguments.weights):
        scale = network.architecture.scale
        measured.append((metadata["name"], scale, measure(sets, network, plains.get(scale))))
        networks.append(network)
        print(report(measured[-1][2], metadata["name"], scale), flush=True)
    if arguments.out:
        arguments.out.write_text(page(measured, networks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
