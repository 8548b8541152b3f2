"""A share of the training pictures small enough to send: `python -m upscale_training.shard DATA --out FOLDER`.

Pictures are taken evenly over the list until the size is reached, with the lines of ATTRIBUTION.tsv that name them, so
that a training on a borrowed machine takes the folder as its `--data`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from .data import read_attribution

MEGABYTES = 58


def chosen(sizes: list[int], most: int) -> list[int]:
    """Places of as many pictures as fit into `most` bytes, spread evenly, in their order."""
    share = min(1.0, most / max(1, sum(sizes)))
    taken, total, owed = [], 0, 0.0
    for place, size in enumerate(sizes):
        owed += share
        if owed >= 1.0 - 1e-9 and total + size <= most:
            taken.append(place)
            total, owed = total + size, owed - 1.0
    return taken


def write_shard(data: Path, out: Path, most: int) -> int:
    """Copies the shard; returns how many pictures it has."""
    names = [row.file for row in read_attribution(data)]
    places = chosen([(data / name).stat().st_size for name in names], most)
    out.mkdir(parents=True, exist_ok=True)
    for place in places:
        shutil.copyfile(data / names[place], out / names[place])
    head, *rows = (data / "ATTRIBUTION.tsv").read_text(encoding="utf-8").splitlines()
    kept = {names[place] for place in places}
    column = head.split("\t").index("file")
    lines = [row for row in rows if row.split("\t")[column] in kept]
    (out / "ATTRIBUTION.tsv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return len(places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=MEGABYTES)
    arguments = parser.parse_args()
    print(write_shard(arguments.data, arguments.out, int(arguments.megabytes * 2**20)), "pictures")


if __name__ == "__main__":
    main()
