"""A contact sheet at 100 %: bicubic, Lanczos3, the network and the original, under several kinds of damage.

`python -m upscale_training.contact --weights FILE --out SHEET.png [--folder PICTURES]`
Without a folder the pictures are pages drawn by code, the only ones that may be shown anywhere.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from .bed import DAMAGES, Picture, drawn_sets
from .evaluate import compare, interpolate, network_enlarger
from .gates import read_sets
from .network import Network
from .sheet import beside
from .weights import load_weights

SHOWN = ("clean", "JPEG 75", "JPEG 50", "JPEG 30")
LINE = 14


def strip(clean: Picture, damage_name: str, network: Network, side: int) -> Picture:
    """One row: a window of `side` pixels from the middle, with what each version measures over it."""
    scale = network.architecture.scale
    damage = next(one for one in DAMAGES if one.name == damage_name)
    small = damage.make(clean, scale)
    ours = network_enlarger(network, damage.matched)
    versions = {
        "bicubic": interpolate("bicubic")(small, scale),
        "Lanczos3": interpolate("lanczos3")(small, scale),
        "Upscale": ours(small, scale),
        "original": clean,
    }
    top, left = ((length - side) // 2 for length in clean.shape[:2])
    return beside([labelled(name, one, clean, damage_name, (top, left, side)) for name, one in versions.items()])


def labelled(name: str, one: Picture, clean: Picture, damage: str, window: tuple[int, int, int]) -> Picture:
    top, left, side = window
    figure = "" if name == "original" else f" {compare(clean, one, 4)[0]:.2f} dB"
    page = Image.new("RGB", (side, side + LINE), "white")
    page.paste(Image.fromarray(one[top : top + side, left : left + side]), (0, LINE))
    ImageDraw.Draw(page).text((2, 1), f"{damage}: {name}{figure}", "black")
    return np.asarray(page)


def sheet(pictures: list[Picture], network: Network, side: int, shown: tuple[str, ...] = SHOWN) -> Picture:
    """Every picture with the next kind of damage, in turn."""
    rows = [strip(picture, shown[index % len(shown)], network, side) for index, picture in enumerate(pictures)]
    return np.concatenate(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--damage", nargs="*", default=list(SHOWN), choices=[damage.name for damage in DAMAGES])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    network, _ = load_weights(arguments.weights)
    if arguments.folder:
        pictures = [cut(one) for one in read_sets([arguments.folder], arguments.most, 0)[arguments.folder.name]]
    else:
        sets = drawn_sets(2)
        pictures = [*sets["text"], *sets["graphics"]][: arguments.most]
    shown = sheet(pictures, network, arguments.side, tuple(arguments.damage))
    Image.fromarray(shown).save(arguments.out, optimize=True)


def cut(picture: Picture) -> Picture:
    """The middle 512 x 512 at most, a multiple of 4: enough to show, quick to enlarge."""
    height, width = (min(length, 512) // 4 * 4 for length in picture.shape[:2])
    top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
    return picture[top : top + height, left : left + width]


if __name__ == "__main__":
    main()
