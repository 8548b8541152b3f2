"""Results of several programs in a row at 100 %, names hidden and columns shuffled, and the tally of their ranks.

`python -m upscale_training.ranked draw PICTURES --versions ours=FOLDER other=FOLDER --out SHEETS` writes sheets and
`key.json`. A folder holds a PNG for each picture, under its name and four times its size; bicubic is made here. The
viewer writes lines such as `NUMBER b>a=d>c` before opening the key;
`python -m upscale_training.ranked tally SHEETS ANSWERS` counts every pair.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from .bed import Picture
from .blind import GAP, HEAD, busiest, read_with_condition
from .evaluate import ENDINGS, interpolate

SCALE = 4
# Side of the crop before it is enlarged, and rows on a sheet.
SIDE, ROWS = 64, 3
BICUBIC = "bicubic"
# Of the columns.
LETTERS = "abcdefgh"


def versions(path: Path, folders: dict[str, Path]) -> dict[str, Picture]:
    """The busiest square of a picture in every version."""
    picture = read_with_condition(path)[0]
    side = min(SIDE, *(length - 2 for length in picture.shape[:2]))
    top, left = (place * SCALE for place in busiest(picture, side))
    cut = (slice(top, top + side * SCALE), slice(left, left + side * SCALE))
    found = {BICUBIC: interpolate("bicubic")(picture, SCALE)[cut]}
    for name, folder in folders.items():
        with Image.open(folder / f"{path.stem}.png") as image:
            made = np.asarray(image.convert("RGB"))
        if made.shape[:2] != tuple(SCALE * length for length in picture.shape[:2]):
            raise ValueError(f"{folder / path.stem}.png has {made.shape[:2]}, not {SCALE} times {picture.shape[:2]}")
        found[name] = made[cut]
    return found


def sheet(rows: list[tuple[int, list[Picture]]]) -> Image.Image:
    wide, high = SIDE * SCALE + GAP, SIDE * SCALE + HEAD
    page = Image.new("RGB", (GAP + wide * len(rows[0][1]), GAP + high * len(rows)), (40, 40, 40))
    for place, (number, pictures) in enumerate(rows):
        for column, picture in enumerate(pictures):
            x, y = GAP + column * wide, place * high
            ImageDraw.Draw(page).text((x, y + 5), f"{number} {LETTERS[column]}", fill=(255, 255, 255))
            page.paste(Image.fromarray(picture), (x, y + HEAD))
    return page


def draw(arguments: argparse.Namespace) -> None:
    folders = {name: Path(folder) for name, folder in (given.split("=", 1) for given in arguments.versions)}
    paths = sorted(path for path in arguments.pictures.iterdir() if path.suffix.lower() in ENDINGS)
    # A picture that one of them refused is no comparison.
    paths = [path for path in paths if all((folder / f"{path.stem}.png").is_file() for folder in folders.values())]
    shuffle, key, rows = np.random.default_rng(arguments.seed), {}, []
    for number, index in enumerate(shuffle.permutation(len(paths)), 1):
        found = versions(paths[index], folders)
        names = [list(found)[place] for place in shuffle.permutation(len(found))]
        key[number] = {"picture": paths[index].name, "columns": names}
        rows.append((number, [found[name] for name in names]))
    arguments.out.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(rows), ROWS):
        sheet(rows[start : start + ROWS]).save(arguments.out / f"sheet-{start // ROWS + 1:02}.png")
    (arguments.out / "key.json").write_text(json.dumps(key, indent=1), encoding="utf-8")


def ranks(ranking: str, columns: int) -> dict[int, int]:
    """`b>a=d>c` as the place of every column, the best 0; ValueError where a column is missing or said twice."""
    groups = enumerate(ranking.split(">"))
    places = {LETTERS.find(letter): place for place, group in groups for letter in group.split("=")}
    if sorted(places) != list(range(columns)) or len(ranking) != 2 * columns - 1:
        raise ValueError(f"{ranking!r} does not rank each of {columns} columns once")
    return places


def tally(key: dict[str, dict], answers: list[str]) -> dict[tuple[str, str], Counter]:
    """For every pair of versions how often the first was `better`, `same` or `worse`."""
    counts: dict[tuple[str, str], Counter] = {}
    for line in filter(None, (answer.strip() for answer in answers)):
        number, ranking = line.split()
        names = key[number]["columns"]
        places = ranks(ranking, len(names))
        for one, other in permutations(range(len(names)), 2):
            said = "better" if places[one] < places[other] else "same" if places[one] == places[other] else "worse"
            counts.setdefault((names[one], names[other]), Counter())[said] += 1
    return counts


def show(arguments: argparse.Namespace) -> None:
    key = json.loads((arguments.folder / "key.json").read_text(encoding="utf-8"))
    print("| | against | better | same | worse |\n|---|---|---|---|---|")
    for (one, other), counts in sorted(tally(key, arguments.answers.read_text().splitlines()).items()):
        print(f"| {one} | {other} | {counts['better']} | {counts['same']} | {counts['worse']} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(required=True)
    drawing = verbs.add_parser("draw")
    drawing.add_argument("pictures", type=Path, help="folder of small pictures")
    drawing.add_argument("--versions", nargs="+", required=True, metavar="NAME=FOLDER")
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--seed", type=int, default=1)
    drawing.set_defaults(run=draw)
    counting = verbs.add_parser("tally")
    counting.add_argument("folder", type=Path)
    counting.add_argument("answers", type=Path)
    counting.set_defaults(run=show)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
