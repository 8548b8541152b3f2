"""The gates of restoring networks, in one command, with the networks before them beside:

`python -m upscale_training.restore_gates --weights FILE --before FILE --eval EVAL [--most 6] [--out PAGE]`

Every row: PSNR-Y over bicubic, SSIM-Y and fine detail (1 is the original's) for what the network may be given, with the
colours that the service gives back.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from .balance import served
from .bed import Picture, drawn_sets
from .condition import CLEAN, RESTORED_NOISE_MIN, RESTORED_SOFTNESS_MIN, SILENT, source_inputs, told_in
from .estimate import Estimator
from .evaluate import (
    ENDINGS,
    estimated,
    interpolate,
    luma,
    network_enlarger,
    psnr,
    read_clean,
    read_network,
    shipped_estimator,
    ssim,
)
from .gates import Gate
from .network import Network
from .restore_bed import ROWS, Row, cropped, pairs, softened
from .winograd import Winograd

REAL = ("RealSR", "DRealSR")
# Decibels over bicubic that issue 19 asks for, by the estimator's word, on photographs.
REACH = {
    4: {
        "noise 20": 1.4,
        "noise 10": 1.2,
        "blur 1.2": 1.8,
        "blur 0.8": 1.9,
        "JPEG 30": 0.7,
        "JPEG 50": 0.8,
        "JPEG 75": 1.1,
    },
    2: {"noise 20": 1.5, "JPEG 30": 0.7, "JPEG 50": 0.8, "JPEG 75": 1.1},
}
SET5_FLOOR = {4: 31.5, 2: 37.5}
# SSIM over bicubic, fine detail, PSNR over bicubic.
REAL_REACH = {"RealSR": (0.037, 0.55, 0.0), "DRealSR": (0.016, 0.55, -0.2)}
# What a clean picture or a page of text may lose against the network before, in decibels.
LOSS_MAX = 0.05

Marks = dict[str, tuple[float, float, float]]
Table = dict[tuple[str, str], Marks]


def fine(plane: np.ndarray) -> float:
    """How much there is of what a blur of 0.7 pixels takes away."""
    return float(np.std(plane - softened(plane[..., None], 0.7)[..., 0]))


def judged(clean: Picture, made: Picture, scale: int) -> tuple[float, float, float]:
    one, other = (luma(whole)[scale:-scale, scale:-scale] for whole in (clean, made))
    return psnr(one, other), ssim(one, other), fine(other) / (fine(one) + 1e-9)


def versions(
    small: Picture, conditions: dict[str, tuple[float, ...]], network: Network, before: Network | None
) -> Iterator[tuple[str, Picture]]:
    scale = network.architecture.scale
    yield "bicubic", interpolate("bicubic")(small, scale)
    if before:
        told = conditions["estimate"][: before.architecture.inputs]
        yield "before", served(network_enlarger(before, told))(small, scale)
    for name, condition in conditions.items():
        chosen = before if before and name == "estimate" and not is_to_restore(condition) else network
        if name == "estimate" and chosen is network:
            condition = told_in("faithful", condition, scale)
        enlarger = network_enlarger(chosen, condition[: chosen.architecture.inputs])
        yield name, served(enlarger)(small, scale)


def is_to_restore(condition: tuple[float, ...]) -> bool:
    """As the service chooses between the network for clean pictures, `before`, and the restoring one."""
    least = source_inputs(RESTORED_NOISE_MIN, RESTORED_SOFTNESS_MIN)
    return any(number >= limit for number, limit in zip(condition[4:], least, strict=True))


def mean_marks(found: list[Marks]) -> Marks:
    names = {name for marks in found for name in marks}
    return {name: tuple(np.mean([marks[name] for marks in found if name in marks], axis=0)) for name in names}


def measure(
    sets: dict[str, list[Picture]],
    real: Path | None,
    rows: list[Row],
    network: Network,
    before: Network | None,
    estimator: Estimator,
) -> Table:
    scale, found = network.architecture.scale, {}
    for name, pictures in sets.items():
        for row in rows:
            marks = []
            for clean in map(cropped, pictures):
                small = row.make(clean, scale)
                made = versions(small, row.conditions(small, estimator), network, before)
                marks.append({given: judged(clean, picture, scale) for given, picture in made})
            found[name, row.name] = mean_marks(marks)
    for name in REAL if real and scale == 4 else ():
        marks = []
        for clean, small in pairs(real / name):
            conditions = {"estimate": (*CLEAN, *estimated(small, estimator)), "unknown": (*CLEAN, SILENT, SILENT)}
            marks.append({who: judged(clean, made, 4) for who, made in versions(small, conditions, network, before)})
        found[name, "real pair"] = mean_marks(marks)
    return found


def gates(found: Table, scale: int) -> list[Gate]:
    demands = []
    for (name, damage), marks in found.items():
        where, bicubic, said = f"{name}, {damage}", marks["bicubic"], marks["estimate"]
        if name == "Set5" and damage == "clean":
            demands.append(Gate(f"{where}: PSNR-Y", said[0], SET5_FLOOR[scale]))
        if "before" in marks and damage == "clean" and name in ("Set5", "text"):
            demands.append(Gate(f"{where}: over the network before", said[0] - marks["before"][0], -LOSS_MAX))
        if name not in ("text", "graphics", *REAL) and damage in REACH[scale]:
            demands.append(Gate(f"{where}: over bicubic", said[0] - bicubic[0], REACH[scale][damage]))
        if damage.startswith("noise"):
            demands.append(Gate(f"{where}: SSIM over bicubic", said[1] - bicubic[1], 0.0))
        if name in REAL:
            likeness, detail, decibels = REAL_REACH[name]
            demands.append(Gate(f"{where}: SSIM over bicubic", said[1] - bicubic[1], likeness))
            demands.append(Gate(f"{where}: fine detail", said[2], detail))
            demands.append(Gate(f"{where}: PSNR over bicubic", said[0] - bicubic[0], decibels))
    return demands


COLUMNS = ("before", "matched", "estimate", "unknown", "mismatched")


def table(found: Table) -> str:
    rows = [f"| set | damage | bicubic | {' | '.join(COLUMNS)} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for (name, damage), marks in found.items():
        base = marks["bicubic"]
        cells = [f"{base[0]:.2f} / {base[1]:.3f} / {base[2]:.2f}"]
        for column in COLUMNS:
            one = marks.get(column)
            cells.append("" if one is None else f"{one[0] - base[0]:+.2f} / {one[1]:.3f} / {one[2]:.2f}")
        rows.append(f"| {name} | {damage} | {' | '.join(cells)} |")
    return "\n".join(rows)


def report(found: Table, title: str, scale: int) -> str:
    demands = gates(found, scale)
    held = sum(demand.passed for demand in demands)
    rows = "\n".join(
        f"| {one.name} | {one.found:+.3f} | {one.asked:+.3f} | {'yes' if one.passed else '**no**'} |" for one in demands
    )
    return (
        f"## {title}\n\n{table(found)}\n\n{held} of {len(demands)} gates hold.\n\n"
        f"| gate | found | asked | held |\n|---|---|---|---|\n{rows}"
    )


def read_folder(folder: Path, most: int) -> list[Picture]:
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    return [read_clean(path, 4) for path in paths[:most]]


INTRODUCTION = """# Restoring, measured

Written by `python -m upscale_training.restore_gates` (training/README.md). Every cell: PSNR-Y over bicubic in
decibels / SSIM-Y / fine detail, where 1 is as much as the original has. Bicubic: PSNR itself. Small pictures by
MATLAB's bicubic, then damaged as named: noise in levels of 255, blur in source pixels, JPEG by libjpeg, 4:2:0.
**before** is the network for clean pictures; **matched**, **unknown** and **mismatched** are the restoring one, given
the true noise and softness, nothing of them, and the opposite; **estimate** is what the service does, network and
condition.
`text` and `graphics` are pages drawn by code. RealSR and DRealSR are pairs taken by one camera at two focal lengths:
PSNR punishes any sharpening there, for the two never align exactly on one another.
"""


def load(path: Path) -> tuple[Network, str]:
    network, metadata = read_network(path)
    network.by = Winograd
    return network, metadata["name"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, nargs="+", required=True, help="weight files or checkpoints")
    parser.add_argument("--before", type=Path, nargs="*", default=[], help="the networks that they would replace")
    parser.add_argument("--eval", type=Path, required=True, help="holds Set5, Kodak24 and real")
    parser.add_argument("--most", type=int, default=6, help="photographs of a folder, at most")
    parser.add_argument("--pages", type=int, default=1, help="drawn pages of each kind")
    parser.add_argument("--rows", nargs="*", help="damages; all where none is named")
    parser.add_argument("--out", type=Path, help="writes the reports there as a page")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    before = {network.architecture.scale: network for network, _ in map(load, arguments.before)}
    sets = {name: read_folder(arguments.eval / name, arguments.most) for name in ("Set5", "Kodak24")}
    sets |= drawn_sets(arguments.pages)
    rows = [row for row in ROWS if not arguments.rows or row.name in arguments.rows]
    reports = []
    for network, name in map(load, arguments.weights):
        scale = network.architecture.scale
        found = measure(sets, arguments.eval / "real", rows, network, before.get(scale), shipped_estimator())
        reports.append(report(found, name, scale))
        print(reports[-1], flush=True)
    if arguments.out:
        arguments.out.write_text(
            "\n\n".join([f"{INTRODUCTION}Of Set5 and Kodak24 the first {arguments.most} pictures.", *reports]) + "\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
