"""Two versions of each picture side by side at 100 %, names hidden and sides shuffled, and the tally of what was said.

`python -m upscale_training.blind draw PICTURES... --weights FILE [--against FILE] --out FOLDER` writes sheets of six
pairs and `key.json`; the viewer writes lines `NUMBER left|right|same` before opening it;
`python -m upscale_training.blind tally FOLDER ANSWERS` counts. Without --against the other version is bicubic.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from .bed import Picture
from .condition import CLEAN, LUMA_TABLE, UNKNOWN, jpeg_condition, quality_table
from .evaluate import ENDINGS, Enlarger, interpolate, luma, network_enlarger, read_network
from .winograd import Winograd

# Sides of the crop before it is enlarged; pairs on a sheet, in two columns.
SIDE, PAIRS, COLUMNS = 80, 6, 2
GAP, HEAD = 8, 22


def read_with_condition(path: Path) -> tuple[Picture, tuple[float, ...]]:
    """A picture as it came, and what its file says: a JPEG's own first tables, roughly, by their mean."""
    with Image.open(path) as image:
        picture, tables = np.asarray(image.convert("RGB")), getattr(image, "quantization", None)
        if image.format != "JPEG":
            return picture, CLEAN
    if not tables:
        return picture, UNKNOWN
    mean = float(np.mean(tables[0]))
    qualities = [(abs(float(np.mean(table_of(quality))) - mean), quality) for quality in range(10, 100)]
    return picture, jpeg_condition(min(qualities)[1], 1.0)


def table_of(quality: int) -> np.ndarray:
    return quality_table(LUMA_TABLE, torch.tensor([quality]))[0].numpy()


def busiest(picture: Picture, side: int) -> tuple[int, int]:
    """Top and left of the square with most contrast between neighbours: where a difference can be seen."""
    plane = luma(picture)
    steps = np.abs(np.diff(plane, axis=0))[:, :-1] + np.abs(np.diff(plane, axis=1))[:-1]
    sums = np.pad(steps.clip(max=40.0).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    found = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    top, left = np.unravel_index(int(found.argmax()), found.shape)
    return int(top), int(left)


def pair(path: Path, scale: int, ours: Enlarger, other: Enlarger) -> tuple[Picture, Picture]:
    """The same crop by both, after the whole picture, at most 320 pixels wide and high, was enlarged."""
    picture = read_with_condition(path)[0][:320, :320]
    side = min(SIDE, *(length - 2 for length in picture.shape[:2]))
    top, left = (one * scale for one in busiest(picture, side))
    cut = (slice(top, top + side * scale), slice(left, left + side * scale))
    return ours(picture, scale)[cut], other(picture, scale)[cut]


def sheet(pairs: list[tuple[int, Picture, Picture]]) -> Image.Image:
    height, width = (max(left.shape[side] for _, left, _ in pairs) for side in (0, 1))
    wide, high = 2 * width + 3 * GAP, height + HEAD + GAP
    rows = -(-len(pairs) // COLUMNS)
    page = Image.new("RGB", (COLUMNS * wide, rows * high), (40, 40, 40))
    for place, (number, left, right) in enumerate(pairs):
        x, y = place % COLUMNS * wide + GAP, place // COLUMNS * high
        ImageDraw.Draw(page).text((x, y + 5), f"{number}: left | right", fill=(255, 255, 255))
        page.paste(Image.fromarray(left), (x, y + HEAD))
        page.paste(Image.fromarray(right), (x + width + GAP, y + HEAD))
    return page


def hide(found: Iterable[tuple[str, Picture, Picture]], shuffle: np.random.Generator, out: Path) -> None:
    """Writes sheets and the key to `out`: of each picture, by its name, ours and the other version."""
    key, pairs = {}, []
    for number, (name, ours, other) in enumerate(found, 1):
        ours_left = bool(shuffle.random() < 0.5)
        key[number] = {"picture": name, "ours": "left" if ours_left else "right"}
        pairs.append((number, ours, other) if ours_left else (number, other, ours))
    out.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(pairs), PAIRS):
        sheet(pairs[start : start + PAIRS]).save(out / f"sheet-{start // PAIRS + 1:02}.png")
    (out / "key.json").write_text(json.dumps(key, indent=1), encoding="utf-8")


def draw(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    network, _ = read_network(arguments.weights)
    network.by, scale = Winograd, network.architecture.scale
    against = read_network(arguments.against)[0] if arguments.against else None
    paths = [
        path
        for given in arguments.pictures
        for path in (sorted(given.iterdir()) if given.is_dir() else [given])
        if path.suffix.lower() in ENDINGS
    ]
    shuffle = np.random.default_rng(arguments.seed)

    def versions(path: Path) -> tuple[str, Picture, Picture]:
        given = read_with_condition(path)[1]
        other = network_enlarger(against, given[:4]) if against else interpolate("bicubic")
        return path.name, *pair(path, scale, network_enlarger(network, given), other)

    chosen = shuffle.permutation(len(paths))[: arguments.most]
    hide((versions(paths[index]) for index in chosen), shuffle, arguments.out)


def tally(key: dict[str, dict[str, str]], answers: list[str]) -> Counter:
    """How often `ours`, the `other` or `no difference` was said."""
    counts: Counter = Counter()
    for line in filter(None, (answer.strip() for answer in answers)):
        number, said = line.split()
        if said not in ("left", "right", "same"):
            raise ValueError(f"{line!r}: left, right or same")
        counts["no difference" if said == "same" else "ours" if key[number]["ours"] == said else "other"] += 1
    return counts


def command(doc: str | None, draw: Callable[[argparse.Namespace], None], flags: Callable) -> None:
    """The two verbs: `draw`, whose own `flags` are added to it, and `tally`."""
    parser = argparse.ArgumentParser(description=doc)
    verbs = parser.add_subparsers(required=True)
    drawing = verbs.add_parser("draw")
    flags(drawing)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--seed", type=int, default=1)
    drawing.set_defaults(run=draw)
    counting = verbs.add_parser("tally")
    counting.add_argument("folder", type=Path)
    counting.add_argument("answers", type=Path)
    counting.set_defaults(
        run=lambda given: print(
            dict(tally(json.loads((given.folder / "key.json").read_text()), given.answers.read_text().splitlines()))
        )
    )
    arguments = parser.parse_args()
    arguments.run(arguments)


def flags(drawing: argparse.ArgumentParser) -> None:
    drawing.add_argument("pictures", type=Path, nargs="+", help="files and folders")
    drawing.add_argument("--weights", type=Path, required=True)
    drawing.add_argument("--against", type=Path, help="another network instead of bicubic")
    drawing.add_argument("--most", type=int, default=36)


if __name__ == "__main__":
    command(__doc__, draw, flags)
