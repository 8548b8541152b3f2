"""The gates of the looks: what they measure, and that each can fail."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from conftest import drawn_picture
from test_network import stirred
from upscale_training import condition, look_gates
from upscale_training.condition import source_inputs, told_in
from upscale_training.evaluate import interpolate
from upscale_training.look_gates import (
    REAL,
    by_model,
    colour_distance,
    gates,
    grid,
    is_restored_in,
    lab,
    marks,
    mean,
    networks,
    pair_marks,
    report,
    tremble,
    trembling,
    versions,
)
from upscale_training.network import Architecture
from upscale_training.restore_bed import Row

SHAPE = Architecture(2, 6, 2, conditioned=True, inputs=6)
CLEAN, NOISY = (1.0, 0.0, 0.0, 0.0, 0.2, 0.2), (1.0, 0.0, 0.0, 0.0, 0.8, 0.2)


def test_a_grid_is_found_and_a_shift_of_all_is_none():
    picture = drawn_picture(1)
    raised = picture.astype(np.int64)
    raised[::2, ::2] += 3
    drawn = np.clip(raised, 0, 255).astype(np.uint8)
    assert 1.5 < grid(drawn, picture, 2) < 3.0
    assert grid(np.minimum(picture, 250) + 5, np.minimum(picture, 250), 2) < 1e-9


def test_colours_are_cies():
    white, red = lab(np.array([255.0, 255.0, 255.0])), lab(np.array([255.0, 0.0, 0.0]))
    # Published values of sRGB's primaries.
    np.testing.assert_allclose(white, [100.0, 0.0, 0.0], atol=0.05)
    np.testing.assert_allclose(red, [53.24, 80.09, 67.20], atol=0.1)
    picture = drawn_picture(2)
    assert colour_distance(picture, picture) == 0.0
    assert colour_distance(np.roll(picture, 1, axis=2), picture) > 5.0


def test_what_reads_clean_is_the_clean_networks_in_every_look():
    restore, crisp, before = stirred(SHAPE), stirred(replace(SHAPE, conditioned=False)), stirred(SHAPE)
    with torch.no_grad():
        before.up.bias += 0.5
    small, looks = drawn_picture(3, 32, 32), networks(restore, crisp)
    made = {given: versions(looks, before, given) for given in (CLEAN, NOISY)}
    clean, noisy = ([one[look](small, 2) for look in ("faithful", "natural", "crisp")] for one in made.values())
    assert (clean[0] == clean[1]).all() and (clean[0] == clean[2]).all()
    assert (noisy[0] != noisy[1]).any() and (noisy[1] != noisy[2]).any()
    assert set(made[CLEAN]) == {"bicubic", "faithful", "natural", "crisp"}


def test_finer_looks_have_lossy_files_and_what_was_told_clean_they_leave():
    jpeg = (1.0, 0.7, 0.7, 1.0, 0.2, 0.2)
    looks = ("faithful", "natural", "crisp")
    assert [is_restored_in(look, jpeg) for look in looks] == [False, True, True]
    assert [is_restored_in(look, (0.0, 0.0, 0.0, 0.0, 0.2, 0.2)) for look in looks] == [False, True, True]
    for given, expected in ((CLEAN, False), (NOISY, True)):
        assert [is_restored_in(look, given) for look in looks] == [expected] * 3


def seen() -> dict[str, dict[str, np.ndarray]]:
    """Marks that every gate lets pass."""
    good = {
        name: np.array([30.0, 0.9, 0.8, 0.0, 0.0, 0.1, 2.0, 0.25, 0.25, 1.0, 4.0])
        for name in ("original", "bicubic", "faithful", "natural", "crisp")
    }
    return {
        where: {name: value.copy() for name, value in good.items()} for where in (*REAL, "text, clean", "text, JPEG 75")
    }


def test_every_gate_can_fail():
    assert all(gate.passed for gate in gates(seen()))
    worse = {
        ("RealSR", "natural", 2): 0.6,
        ("RealSR", "natural", 1): 0.88,
        ("DRealSR", "natural", 0): 29.0,
        ("text, clean", "crisp", 0): 29.8,
        ("RealSR", "natural", 3): 0.2,
        ("RealSR", "crisp", 4): 0.6,
        ("DRealSR", "crisp", 5): 0.5,
        ("RealSR", "crisp", 9): 1.1,
        ("DRealSR", "natural", 10): 3.9,
        ("text, clean", "natural", 7): 0.36,
        ("text, JPEG 75", "natural", 6): 2.15,
        ("text, JPEG 75", "faithful", 6): 1.85,
        ("text, JPEG 75", "bicubic", 6): 1.85,
    }
    for (where, name, place), value in worse.items():
        found = seen()
        found[where][name][place] = value
        missed = [gate.name for gate in gates(found) if not gate.passed]
        assert missed and all(where in one for one in missed), (where, name, place)
        assert not report(found, "t")[1]
    assert report(seen(), "t")[1]


def test_marks_are_of_every_version_and_their_mean():
    clean = drawn_picture(4, 64, 64)
    small = Row("clean").make(clean, 2)
    made = {name: interpolate("bicubic") for name in ("bicubic", "faithful")}
    one = marks(clean, small, made, 2)
    assert set(one) == set(made) and one["bicubic"].shape == (10,)
    assert one["bicubic"][6] == pytest.approx(colour_distance(clean, interpolate("bicubic")(small, 2)))
    np.testing.assert_array_equal(mean([one, one])["faithful"], one["faithful"])
    pair = pair_marks(clean, small, made, 2)
    assert set(pair) == {*made, "original"} and pair["original"][0] > 60.0
    np.testing.assert_array_equal(pair["bicubic"][:9], one["bicubic"][:9])
    assert tremble(pair["bicubic"]) == np.sqrt(np.divide(*trembling(interpolate("bicubic")(small, 2), clean)))


@pytest.mark.parametrize(
    ("softness", "told"), [(0.1, 0.1), (0.2, 0.2), (0.275, 0.315), (0.5, 0.58), (0.66, 0.7), (0.8, 0.8), (1.2, 1.2)]
)
def test_the_network_is_told_of_a_soft_picture_what_the_engine_tells_it(softness: float, told: float):
    """The pairs stand in upscale_core/src/condition/adjusted.rs as well; at 4x 0.06 pixels are added, not 0.08."""
    read = (*condition.CLEAN, *source_inputs(1.0, softness))
    file, noise = (condition.UNKNOWN, 2.0) if softness >= 0.2 else (condition.CLEAN, 1.0)
    at_4x = softness + (told - softness) * 0.06 / 0.08
    for look in ("natural", "crisp"):
        assert told_in(look, read, 4) == pytest.approx((*file, *source_inputs(noise, at_4x)))
    assert told_in("natural", read, 2)[-1] == pytest.approx(source_inputs(noise, told)[1])
    assert told_in("faithful", read, 4) == pytest.approx((*file, *source_inputs(noise, softness)))
    assert told_in("faithful", read, 2) == pytest.approx((*condition.CLEAN, *source_inputs(noise, softness)))
    compressed = (*condition.jpeg_condition(90, 1.0), *read[4:])
    assert told_in("faithful", compressed, 4) == pytest.approx(compressed)
    noisy = (*condition.CLEAN, *source_inputs(1.25, softness))
    assert told_in("natural", noisy, 4) == noisy


def test_a_model_is_measured_on_the_camera_pairs(tmp_path, monkeypatch):
    for name, folder in ((name, folder) for name in REAL for folder in ("HR", "LR_x4")):
        (tmp_path / name / folder).mkdir(parents=True)
        picture = drawn_picture(3)[:64, :64]
        Image.fromarray(picture if folder == "HR" else picture[::4, ::4]).save(tmp_path / name / folder / "one.png")

    def enlarged(program: Path, file: bytes, scale: int, *flags: str) -> tuple[np.ndarray, str]:
        assert (program, scale, flags) == (Path("upscale"), 4, ("--model", str(Path("m.param").resolve())))
        with Image.open(io.BytesIO(file)) as image:
            return interpolate("bicubic")(np.asarray(image), scale), ""

    monkeypatch.setattr(look_gates, "enlarged", enlarged)
    lines = list(by_model(Path("upscale"), Path("m.param"), tmp_path, 4))
    assert [line.split(":")[0] for line in lines] == [f"- {name}, m" for name in REAL]
    assert all(" +0.00 / " in line and "tremble by" in line for line in lines)
