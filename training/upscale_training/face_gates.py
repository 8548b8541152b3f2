"""Whether face_enhance helps, judged on persons that were never trained on: the shipped program against itself.

`python -m upscale_training.face_gates --upscale PROGRAM --faces FOLDER --without FOLDER`

Every held-out portrait is shrunk (antialiased bicubic), spoilt and written as the file that a customer would send;
PROGRAM enlarges it with and without `--face-enhance`. Every gate is printed; the exit status is 1 where one fails.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from .evaluate import luma, psnr
from .faces import landmarks, read_portraits, rows
from .identity import margins, rank_one
from .program import enlarged
from .resize import resize_8bit
from .restore_bed import softened
from .restore_gates import fine
from .spectrum import SPECTRUM, finest

Picture = NDArray[np.uint8]


def jpeg(quality: int) -> Callable[[Picture], bytes]:
    def file(small: Picture) -> bytes:
        written = io.BytesIO()
        Image.fromarray(small).save(written, "JPEG", quality=quality)
        return written.getvalue()

    return file


def noisy(level: float) -> Callable[[Picture], bytes]:
    """The same noise for every run; a lossless file."""

    def file(small: Picture) -> bytes:
        drawn = np.random.default_rng(small.shape).normal(0.0, level, small.shape)
        return clean(np.clip(small + drawn + 0.5, 0.0, 255.0).astype(np.uint8))

    return file


def soft(sigma: float) -> Callable[[Picture], bytes]:
    def file(small: Picture) -> bytes:
        return clean(np.clip(np.round(softened(small, sigma)), 0.0, 255.0).astype(np.uint8))

    return file


def clean(small: Picture) -> bytes:
    written = io.BytesIO()
    Image.fromarray(small).save(written, "PNG")
    return written.getvalue()


DAMAGES = {
    "JPEG 30": jpeg(30),
    "JPEG 50": jpeg(50),
    "JPEG 70": jpeg(70),
    "noise 5": noisy(5.0),
    "noise 12": noisy(12.0),
    "blur 1": soft(1.0),
    "clean": clean,
}
# The gates that protect a person hold for these; a clean file is shown beside them. Until 2026-11-29 noise 12 and
# blur 1 needed no gain: a network that improved 77 % of the noisy faces had drawn dots on skin.
JUDGED = ("JPEG 30", "JPEG 50", "JPEG 70", "noise 5", "noise 12", "blur 1")
# On these `face_enhance` has to be seen: fine detail in the face grows by this factor, and so many levels change.
SEEN = ("JPEG 30", "noise 12", "blur 1")
DETAIL_GROWS_MIN = 4.0 / 3.0
CHANGE_MIN = 3.0
# What may be lost of the margins to the next person (identity.py) in the mean, and what must stay of each: what
# ships keeps .90 and more, a quarter of another face mixed in less than .85 (test_faces.py).
MARGIN_LOST_MAX = 0.005
MARGIN_KEPT_MIN = 0.85
# In levels of 255. A network that held every other gate had drawn 0.35 to 0.46 on skin (decision 12).
GRID_MAX = 0.1
# Of `weave` at 4x, in the mean: networks whose weave was seen in hair have .16 to .21. At 2x, where the
# source itself holds as fine detail, it is shown only: clean files have .43.
WEAVE_MAX = 0.15


@dataclass(frozen=True)
class Mark:
    """One portrait under one damage, without (first) and with face_enhance."""

    found: int
    box: tuple[float, float]
    eyes: tuple[float, float]
    consistency: tuple[float, float]
    grid: float
    weave: float
    # Fine detail in the face, 1 is the original's; and by how many levels of 255 the face differs on average.
    detail: tuple[float, float]
    change: float
    pictures: tuple[Picture, Picture]


def enlarge(program: Path, file: bytes, scale: int, faces: bool) -> tuple[Picture, int]:
    """The program's result and how many faces it says it made clearer."""
    picture, said = enlarged(program, file, scale, *(["--face-enhance"] if faces else []))
    counted = [line for line in said.splitlines() if line.endswith(" faces")]
    return picture, int(counted[0].split()[0]) if counted else 0


def around(marks: NDArray) -> tuple[slice, slice]:
    """Rows and columns of the face: from the forehead to the chin, by the distance of eyes and mouth."""
    eyes, mouth = marks[:2].mean(axis=0), marks[3:].mean(axis=0)
    height = mouth[1] - eyes[1]
    middle = marks.mean(axis=0)[0]
    rows_ = slice(max(0, int(eyes[1] - 1.1 * height)), int(mouth[1] + 0.8 * height))
    return rows_, slice(max(0, int(middle - 1.3 * height)), int(middle + 1.3 * height))


def eye_band(marks: NDArray) -> tuple[slice, slice]:
    """Both eyes with their brows."""
    eyes, mouth = marks[:2], marks[3:].mean(axis=0)
    half = 0.3 * (mouth[1] - eyes[:, 1].mean())
    left, right = eyes[:, 0].min(), eyes[:, 0].max()
    side = 0.35 * (right - left)
    return (
        slice(max(0, int(eyes[:, 1].min() - half)), int(eyes[:, 1].max() + half)),
        slice(max(0, int(left - side)), int(right + side)),
    )


def judge(program: Path, original: Picture, marks: NDArray, damage: str, scale: int) -> Mark:
    small = resize_8bit(original, original.shape[0] // scale, original.shape[1] // scale)
    file = DAMAGES[damage](small)
    (plain, _), (faces, found) = (enlarge(program, file, scale, flag) for flag in (False, True))
    both = (plain, faces)

    def marks_of(part: tuple[slice, slice]) -> tuple[float, float]:
        one, other = (psnr(luma(original)[part], luma(made)[part]) for made in both)
        return one, other

    back = tuple(psnr(luma(small), luma(resize_8bit(made, *small.shape[:2]))) for made in both)
    face = around(marks)
    lumas = [luma(one)[face] for one in (original, *both)]
    plain_detail, detail = (fine(made) / (fine(lumas[0]) + 1e-9) for made in lumas[1:])
    return Mark(
        found,
        marks_of(face),
        marks_of(eye_band(marks)),
        (back[0], back[1]),
        grid(both, face, scale),
        weave(faces),
        (plain_detail, detail),
        float(np.abs(lumas[2] - lumas[1]).mean()),
        both,
    )


def grid(both: tuple[Picture, Picture], part: tuple[slice, slice], scale: int) -> float:
    """What face_enhance adds that repeats with every source pixel: deviation of the scale² places' means, in levels."""
    added = luma(both[1])[part] - luma(both[0])[part]
    height, width = (length // scale for length in added.shape)
    places = added[: height * scale, : width * scale].reshape(height, scale, width, scale)
    return float(places.mean(axis=(0, 2)).std())


def weave(picture: Picture) -> float:
    """`spectrum.finest` in the window where it is most."""
    plane = torch.from_numpy(luma(picture) / 255.0).float()[None]
    return float(finest(plane, step=SPECTRUM // 4).max())


def held_out(folder: Path, scale: int) -> list[tuple[Picture, NDArray]]:
    """Portraits with their landmarks, cut to a multiple of the scale."""
    known = {row["file"]: landmarks(row) for row in rows(folder)}
    found = []
    for one in read_portraits(folder):
        if one.is_held_out():
            with Image.open(folder / one.file) as image:
                picture = np.asarray(image.convert("RGB"))
            cut = picture[: picture.shape[0] // scale * scale, : picture.shape[1] // scale * scale]
            found.append((cut, known[one.file]))
    return found


def changed_without_faces(program: Path, folder: Path, names: list[str]) -> tuple[int, int, int]:
    """Pictures without a face: how many, detections in them, samples changed where nothing was detected."""
    detections = samples = 0
    for name in names:
        file = (folder / name).read_bytes()
        (plain, _), (faces, found) = (enlarge(program, file, 2, flag) for flag in (False, True))
        detections += found
        samples += int((plain != faces).sum()) if found == 0 else 0
    return len(names), detections, samples


def report(program: Path, people: list, scale: int, jobs: int) -> tuple[list[str], list[tuple[str, bool]]]:
    """The table, and each gate with whether it holds."""
    lines = [
        "| damage | found | box dB | improved | eyes not worse | consistency dB | rank 1 plain | rank 1 faces "
        "| margin plain | faces | least kept | grid | weave | fine detail plain | faces | change |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    gates = []
    gallery = [original for original, _ in people]
    for damage in DAMAGES:
        with ThreadPoolExecutor(jobs) as pool:
            marks = list(pool.map(lambda one, damage=damage: judge(program, *one, damage, scale), people))
        gain = np.array([mark.box[1] - mark.box[0] for mark in marks])
        eyes = np.array([mark.eyes[1] - mark.eyes[0] for mark in marks])
        back = float(np.mean([mark.consistency[1] - mark.consistency[0] for mark in marks]))
        ranks = [rank_one(gallery, [mark.pictures[which] for mark in marks]) for which in (0, 1)]
        apart = [margins(gallery, [mark.pictures[which] for mark in marks]) for which in (0, 1)]
        lost, least = float((apart[0] - apart[1]).mean()), float((apart[1] / apart[0]).min())
        found = sum(mark.found > 0 for mark in marks)
        drawn, woven = (float(np.mean([getattr(mark, name) for mark in marks])) for name in ("grid", "weave"))
        better, kept = float((gain > 0).mean()), float((eyes >= 0).mean())
        detail, change = (
            np.mean([mark.detail for mark in marks], axis=0),
            float(np.mean([mark.change for mark in marks])),
        )
        lines.append(
            f"| {damage} | {found}/{len(marks)} | {gain.mean():+.2f} | {better:.0%} | {kept:.0%} "
            f"| {back:+.2f} | {ranks[0]:.3f} | {ranks[1]:.3f} | {apart[0].mean():.3f} | {apart[1].mean():.3f} "
            f"| {least:.2f} | {drawn:.2f} | {woven:.2f} "
            f"| {detail[0]:.2f} | {detail[1]:.2f} | {change:.1f} |"
        )
        if damage in JUDGED:
            gates += [
                (f"{damage}: face box {gain.mean():+.2f} dB, at least +0.30", gain.mean() >= 0.3),
                (f"{damage}: {better:.0%} of faces improved, at least 80 %", better >= 0.8),
                (f"{damage}: eye band not worse on {kept:.0%}, at least 95 %", kept >= 0.95),
                (f"{damage}: consistency {back:+.2f} dB, at least -0.30", back >= -0.3),
                (f"{damage}: rank 1 {ranks[1]:.3f}, at least {ranks[0]:.3f}", ranks[1] >= ranks[0]),
                (
                    f"{damage}: margin to the next person {-lost:+.4f}, at least -{MARGIN_LOST_MAX}",
                    lost <= MARGIN_LOST_MAX,
                ),
                (f"{damage}: of each margin {least:.3f} kept, at least {MARGIN_KEPT_MIN}", least >= MARGIN_KEPT_MIN),
                (f"{damage}: a grid of {drawn:.2f} levels, at most {GRID_MAX}", drawn <= GRID_MAX),
            ]
        if damage in JUDGED and scale == 4:
            gates.append((f"{damage}: a weave of {woven:.2f}, at most {WEAVE_MAX}", woven <= WEAVE_MAX))
        if damage in SEEN:
            grows = detail[1] / detail[0]
            gates += [
                (f"{damage}: fine detail x {grows:.2f}, at least x {DETAIL_GROWS_MIN:.2f}", grows >= DETAIL_GROWS_MIN),
                (f"{damage}: {change:.1f} levels change, at least {CHANGE_MIN}", change >= CHANGE_MIN),
            ]
    return lines, gates


def conclude(gates: list[tuple[str, bool]]) -> None:
    """Prints every gate and ends the program: with 1 where one fails."""
    for text, holds in gates:
        print("holds " if holds else "FAILS ", text)
    failed = sum(not holds for _, holds in gates)
    print(json.dumps({"failed": failed, "gates": len(gates)}))
    sys.exit(1 if failed else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upscale", type=Path, required=True, help="the program to judge")
    parser.add_argument("--faces", type=Path, required=True, help="folder with SOURCES.tsv and its portraits")
    parser.add_argument("--without", type=Path, help="folder of pictures without faces")
    parser.add_argument("--scale", type=int, choices=(2, 4), default=4)
    parser.add_argument("--people", type=int, default=0, help="only so many of the held-out persons; 0: all")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    program = arguments.upscale.resolve()
    people = held_out(arguments.faces, arguments.scale)
    people = people[: arguments.people or len(people)]
    lines, gates = report(program, people, arguments.scale, arguments.jobs)
    if arguments.without:
        names = sorted(path.name for path in arguments.without.iterdir() if path.suffix != ".tsv")
        count, detections, samples = changed_without_faces(program, arguments.without, names)
        gates.append((f"{detections} detections in {count} pictures, at most 1 in 20", detections * 20 <= count))
        gates.append((f"{samples} samples changed where nothing was detected, none", samples == 0))
    print(f"{len(people)} persons at {arguments.scale}x", *lines, sep="\n")
    conclude(gates)


if __name__ == "__main__":
    main()
