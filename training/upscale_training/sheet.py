"""A picture to look at: small (nearest), bicubic, network and original side by side. It measures nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .evaluate import interpolate, network_enlarger, read_clean
from .resize import resize_8bit
from .weights import load_weights

GAP = 4


def strip(clean: NDArray[np.uint8], weights: Path) -> list[NDArray[np.uint8]]:
    """The four versions of one picture, all of the size of `clean`."""
    network, _ = load_weights(weights)
    scale = network.architecture.scale
    small = resize_8bit(clean, clean.shape[0] // scale, clean.shape[1] // scale)
    nearest = small.repeat(scale, axis=0).repeat(scale, axis=1)
    return [nearest, interpolate("bicubic")(small, scale), network_enlarger(network)(small, scale), clean]


def beside(pictures: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    gap = np.full((pictures[0].shape[0], GAP, 3), 255, np.uint8)
    return np.concatenate([part for picture in pictures for part in (picture, gap)][:-1], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--crop", type=int, nargs=3, metavar=("X", "Y", "SIDE"), help="of the original's pixels")
    parser.add_argument("--zoom", type=int, default=1, help="show every pixel this many times")
    arguments = parser.parse_args()
    network, _ = load_weights(arguments.weights)
    rows = []
    for path in arguments.pictures:
        versions = strip(read_clean(path, network.architecture.scale), arguments.weights)
        if arguments.crop:
            x, y, side = arguments.crop
            versions = [version[y : y + side, x : x + side] for version in versions]
        rows.append(beside(versions))
    width = max(row.shape[1] for row in rows)
    padded = [np.pad(row, ((0, GAP), (0, width - row.shape[1]), (0, 0)), constant_values=255) for row in rows]
    sheet = np.concatenate(padded).repeat(arguments.zoom, axis=0).repeat(arguments.zoom, axis=1)
    Image.fromarray(sheet).save(arguments.out)


if __name__ == "__main__":
    main()
