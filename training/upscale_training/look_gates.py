"""Whether the looks may ship: the restoring network against it mixed with crisper weights.

`python -m upscale_training.look_gates --restore FILE --crisp FILE --before FILE --eval EVAL [--out PAGE]`

Pairs from real cameras (at 2x their originals halved), photographs, text and graphics; each by bicubic, by the
restoring network (faithful), and by its weights mixed with the crisp ones (natural, crisp). What reads clean is the
clean network's in the faithful look, and in every look where it is lossless. The exit status is 1 where a gate fails.
With `--beside MODEL --upscale PROGRAM` the camera pairs are enlarged by somebody's model as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from . import flat, spectrum, straight
from .balance import served
from .bed import Picture, drawn_sets
from .condition import CLEAN, told_in
from .data import as_batch
from .edges import finished
from .evaluate import Enlarger, estimated, interpolate, luma, network_enlarger, shipped_estimator
from .face_gates import clean as as_file
from .gates import Gate
from .network import Network, between
from .program import enlarged
from .restore_bed import ROWS, Row, cropped, pairs
from .restore_gates import REAL, is_to_restore, judged, load, read_folder

# Share of the crisp weights in each look, by scale, as in upscale_core/src/look.rs.
LOOKS = {
    2: {"faithful": 0.0, "natural": 0.4, "crisp": 1.0},
    4: {"faithful": 0.0, "natural": 0.3, "crisp": 0.6},
}
NAMES = tuple(LOOKS[4])
# Damages of the bed on which looks are compared.
INPUTS = ("clean", "JPEG 90", "JPEG 75", "JPEG 30", "noise 10", "blur 0.8", "blur 1.0, noise 5, JPEG 75")
# Those behind which it is said how steep straight edges are.
SLOPED = ("JPEG 75", "noise 10", "blur 0.8")
# Of the natural look: fine detail at least; SSIM lost to the faithful one and PSNR lost to bicubic at most.
FINE_MIN, LIKENESS_LOSS_MAX, DECIBELS_LOSS_MAX = 0.7, 0.004, 0.3
# How far edges tremble, beside the original's: realesr-general's 0.95 and 0.93, bicubic's 1.2 and 1.4.
TREMBLE_MAX = 1.0
# SSIM of realesr-general-x4v3 on the same pairs, the higher one of a trial's (0.783, 0.815) and of `--beside`'s (0.782,
# 0.822).
GENERAL = {"RealSR": 0.783, "DRealSR": 0.822}
# Text and graphics against the faithful look, decibels; a grid in levels; mean colours from the faithful look's, and
# how much further than its and bicubic's from the original behind JPEG, ΔE of CIE 1976; how far a spectrum may stand
# out at the source's own frequencies, in factors of e (Real-ESRGAN's x4plus: 0.15).
DRAWN_LOSS_MAX, GRID_MAX, COLOUR_MAX, FURTHER_MAX, COMB_MAX = 0.1, 0.1, 0.5, 0.1, 0.25
# Fine contrast that a look may draw where the original is flat, in levels beyond the faithful look's. Layers whose
# grain was seen on walls and skies drew .91 more on noisy photographs.
SPECKLE_MAX = 0.1

Marks = dict[str, np.ndarray]


def networks(restore: Network, crisp: Network) -> dict[str, Network]:
    return {name: between(restore, crisp, share) for name, share in LOOKS[restore.architecture.scale].items()}


def grid(one: Picture, other: Picture, scale: int) -> float:
    """How far the means of the scale² places within a source pixel lie apart in the difference, in levels."""
    difference = luma(one) - luma(other)
    height, width = (length // scale * scale for length in difference.shape)
    places = difference[:height, :width].reshape(height // scale, scale, width // scale, scale).mean(axis=(0, 2))
    return float(np.abs(places - places.mean()).max())


def comb(one: Picture, clean: Picture, scale: int) -> float:
    """`spectrum.comb` of two pictures."""
    return float(spectrum.comb(*map(spectrum.standing_out, (as_batch([one]), as_batch([clean]))), scale)[0])


def trembling(one: Picture, clean: Picture) -> np.ndarray:
    """`straight.trembling` of a picture."""
    return np.array([float(value[0]) for value in straight.trembling(as_batch([one]), as_batch([clean]))])


def speckled(one: Picture, clean: Picture) -> np.ndarray:
    """`flat.speckle` of a picture."""
    return np.array([float(value[0]) for value in flat.speckle(as_batch([one]), as_batch([clean]))])


def colour_distance(one: Picture, other: Picture) -> float:
    """ΔE of CIE 1976 between the mean colours of squares of 16 pixels, averaged."""
    height, width = (length // 16 * 16 for length in one.shape[:2])
    shape = (height // 16, 16, width // 16, 16, 3)
    first, second = (lab(picture[:height, :width].reshape(shape).mean(axis=(1, 3))) for picture in (one, other))
    return float(np.sqrt(((first - second) ** 2).sum(axis=-1)).mean())


def lab(levels: np.ndarray) -> np.ndarray:
    """CIE L*a*b* under D65 of sRGB levels 0..255 (IEC 61966-2-1, CIE 15)."""
    share = levels / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def versions(looks: dict[str, Network], before: Network, condition: tuple[float, ...]) -> dict[str, Enlarger]:
    """Bicubic and the looks as the service makes them."""
    found = {"bicubic": interpolate("bicubic")}
    for name, network in looks.items():
        scale = network.architecture.scale
        restored = is_restored_in(name, condition)
        chosen, told = (network, told_in(name, condition, scale)) if restored else (before, condition)
        enlarger = network_enlarger(chosen, told[: chosen.architecture.inputs])
        is_finer = restored and name != "faithful"
        found[name] = served(finished(enlarger, name, condition[-1]) if is_finer else enlarger)
    return found


def is_restored_in(look: str, condition: tuple[float, ...]) -> bool:
    """As `Condition::is_restored_in` of the engine: finer looks have what is not known to be lossless as well."""
    return is_to_restore(condition) or (look != "faithful" and condition[:4] != CLEAN)


def marks(clean: Picture, small: Picture, made: dict[str, Enlarger], scale: int) -> Marks:
    """By method: PSNR-Y, SSIM, fine detail; from the faithful look grid, colours; comb; colours from the original;
    speckle's power and the share of flat places; how steep edges are."""
    pictures = {name: enlarger(small, scale) for name, enlarger in made.items()}
    found, original = marked(clean, pictures, scale), as_batch([clean])
    return {name: np.append(found[name], straight.steep(as_batch([one]), original)) for name, one in pictures.items()}


def pair_marks(clean: Picture, small: Picture, made: dict[str, Enlarger], scale: int) -> Marks:
    """As `marks`, of the original too; after them what lies beside edges' own course, and their slope."""
    pictures = {name: enlarger(small, scale) for name, enlarger in made.items()} | {"original": clean}
    found = marked(clean, pictures, scale)
    return {name: np.append(found[name], trembling(one, clean)) for name, one in pictures.items()}


def marked(clean: Picture, pictures: dict[str, Picture], scale: int) -> Marks:
    faithful = pictures["faithful"]
    return {
        name: np.array(
            [
                *judged(clean, one, scale),
                grid(one, faithful, scale),
                colour_distance(one, faithful),
                comb(one, clean, scale),
                colour_distance(clean, one),
                *speckled(one, clean),
            ]
        )
        for name, one in pictures.items()
    }


def mean(found: list[Marks]) -> Marks:
    return {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}


def measure(
    looks: dict[str, Network], before: Network, sets: dict[str, list[Picture]], real: Path, rows: list[Row]
) -> dict[str, Marks]:
    scale, estimator, found = before.architecture.scale, shipped_estimator(), {}
    for name, pictures in sets.items():
        for row in rows:
            seen = []
            for clean in map(cropped, pictures):
                small = row.make(clean, scale)
                made = versions(looks, before, row.conditions(small, estimator)["estimate"])
                seen.append(marks(clean, small, made, scale))
            found[f"{name}, {row.name}"] = mean(seen)
    for name in REAL:
        seen = []
        for clean, small in pairs(real / name, scale):
            made = versions(looks, before, (*CLEAN, *estimated(small, estimator)))
            seen.append(pair_marks(clean, small, made, scale))
        found[name if scale == 4 else f"{name}, halved"] = mean(seen)
    return found


def by_model(program: Path, model: Path, real: Path, scale: int) -> Iterator[str]:
    """A line for each folder of camera pairs: PSNR over bicubic, SSIM and fine detail of what `model` makes of them."""
    for name in REAL:
        seen = []
        for clean, small in pairs(real / name, scale):
            made, _ = enlarged(program, as_file(small), scale, "--model", str(model.resolve()))
            pictures = (made, interpolate("bicubic")(small, scale))
            seen.append([(*judged(clean, one, scale), *trembling(one, clean)) for one in pictures])
        one, bicubic = np.mean(seen, axis=0)
        figures = f"{one[0] - bicubic[0]:+.2f} / {one[1]:.3f} / {one[2]:.2f}"
        yield f"- {name}, {model.stem}: {figures}, edges tremble by {tremble(one):.3f}"


def tremble(one: np.ndarray) -> float:
    """Output pixels, of marks as `pair_marks` gives them."""
    return float(np.sqrt(one[-2] / one[-1]))


def speckle(one: np.ndarray) -> float:
    """Levels, of marks as `marked` gives them; 0 where nothing is flat."""
    return float(np.sqrt(one[7] / max(one[8], 1e-9)))


def gates(found: dict[str, Marks]) -> list[Gate]:
    """Those of the natural look, and what no look may do."""
    demands = []
    for where, one in found.items():
        bicubic, faithful, natural = one["bicubic"], one["faithful"], one["natural"]
        if where in REAL:
            demands.append(Gate(f"{where}: fine detail", natural[2], FINE_MIN))
            demands.append(Gate(f"{where}: SSIM over faithful", natural[1] - faithful[1], -LIKENESS_LOSS_MAX))
            demands.append(Gate(f"{where}: SSIM", natural[1], GENERAL[where]))
            demands.append(Gate(f"{where}: PSNR over bicubic", natural[0] - bicubic[0], -DECIBELS_LOSS_MAX))
        if where.startswith(("text", "graphics")):
            for look in ("natural", "crisp"):
                demands.append(Gate(f"{where}: {look} over faithful", one[look][0] - faithful[0], -DRAWN_LOSS_MAX))
        for look in ("natural", "crisp"):
            if where.startswith(REAL):
                further = tremble(one[look]) / tremble(one["original"])
                demands.append(Gate(f"{where}: {look}, edges tremble beside the original's", -further, -TREMBLE_MAX))
            more = speckle(one[look]) - speckle(faithful)
            demands.append(Gate(f"{where}: {look}, speckle beyond faithful's", -more, -SPECKLE_MAX))
            # Letters and lines do not lie evenly over the places: there a difference has a grid that no network drew.
            if not where.startswith(("text", "graphics")):
                demands.append(Gate(f"{where}: {look}, grid", -one[look][3], -GRID_MAX))
                # Where the looks are alike the clean network made them.
                if where in REAL or (one[look][:3] != faithful[:3]).any():
                    demands.append(Gate(f"{where}: {look}, comb", -one[look][5], -COMB_MAX))
            # A JPEG has itself moved colours by more than COLOUR_MAX: there no look may be further from the original.
            if "JPEG" in where:
                for other in ("faithful", "bicubic"):
                    beyond = one[look][6] - one[other][6]
                    demands.append(Gate(f"{where}: {look}, colours beyond {other}'s", -beyond, -FURTHER_MAX))
            else:
                demands.append(Gate(f"{where}: {look}, colour", -one[look][4], -COLOUR_MAX))
    return demands


def report(found: dict[str, Marks], title: str) -> tuple[str, bool]:
    lines = [f"## {title}", "", f"| pictures | bicubic | {' | '.join(NAMES)} |", "|---" * (2 + len(NAMES)) + "|"]
    for where, one in found.items():
        base = one["bicubic"]
        cells = [f"{base[0]:.2f} / {base[1]:.3f} / {base[2]:.2f}"]
        cells += [f"{one[look][0] - base[0]:+.2f} / {one[look][1]:.3f} / {one[look][2]:.2f}" for look in NAMES]
        lines.append(f"| {where} | {' | '.join(cells)} |")
    for where in (one for one in found if not one.startswith(("text", "graphics"))):
        lines.append(f"- {where}, comb: " + ", ".join(f"{look} {found[where][look][5]:.2f}" for look in NAMES))
    for where in (one for one in found if one.startswith(REAL)):
        apart = ", ".join(f"{name} {tremble(found[where][name]):.3f}" for name in ("original", "bicubic", *NAMES))
        lines.append(f"- {where}, edges tremble by: {apart}")
    for row in SLOPED:
        shown = [found[where] for where in (f"Set5, {row}", f"Kodak24, {row}") if where in found]
        if shown:
            steep = ", ".join(f"{name} {mean(shown)[name][-1]:.2f}" for name in ("bicubic", *NAMES))
            lines.append(f"- photographs, {row}, straight edges beside the original's: {steep}")
    for where, one in found.items():
        apart = ", ".join(f"{method} {one[method][6]:.2f}" for method in ("bicubic", *NAMES))
        lines.append(f"- {where}, colours from the original's: {apart}")
    for where, one in found.items():
        apart = ", ".join(f"{method} {speckle(one[method]):.2f}" for method in ("bicubic", *NAMES))
        lines.append(f"- {where}, speckle on {100 * one['faithful'][8]:.0f} % that are flat: {apart}")
    demands = gates(found)
    missed = [one for one in demands if not one.passed]
    lines += ["", f"{len(demands) - len(missed)} of {len(demands)} gates hold."]
    lines += [f"- missed: {one.name}: {one.found:+.3f}, asked {one.asked:+.3f}" for one in missed]
    return "\n".join(lines), not missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restore", type=Path, required=True, help="the restoring network that ships")
    parser.add_argument("--crisp", type=Path, required=True, help="crisper weights or their checkpoint")
    parser.add_argument("--before", type=Path, required=True, help="the network for clean pictures that ships")
    parser.add_argument("--eval", type=Path, required=True, help="holds Set5, Kodak24 and real")
    parser.add_argument("--most", type=int, default=5, help="photographs of a folder, at most")
    parser.add_argument("--beside", type=Path, help="the file of somebody's model")
    parser.add_argument("--upscale", type=Path, help="the program that runs it")
    parser.add_argument("--out", type=Path, help="adds the report to this page")
    arguments = parser.parse_args()
    if bool(arguments.beside) != bool(arguments.upscale):
        parser.error("--beside and --upscale go together")
    torch.set_num_threads(1)
    restore, crisp, before = (load(path)[0] for path in (arguments.restore, arguments.crisp, arguments.before))
    looks = networks(restore, crisp)
    sets = {name: read_folder(arguments.eval / name, arguments.most) for name in ("Set5", "Kodak24")} | drawn_sets(2)
    rows = [row for row in ROWS if row.name in INPUTS]
    found = measure(looks, before, sets, arguments.eval / "real", rows)
    text, held = report(found, f"The looks at {before.architecture.scale}x")
    if arguments.beside:
        program, scale = arguments.upscale.resolve(), before.architecture.scale
        text += "\n\n" + "\n".join(by_model(program, arguments.beside, arguments.eval / "real", scale))
    print(text)
    if arguments.out:
        with open(arguments.out, "a", encoding="utf-8") as page:
            page.write(f"\n{text}\n")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
