from dataclasses import replace

import numpy as np
import pytest

from conftest import drawn_picture
from test_network import stirred
from upscale_training.bed import DAMAGES, conditions, drawn_sets
from upscale_training.condition import CLEAN, UNKNOWN
from upscale_training.contact import LINE, sheet
from upscale_training.gates import Gate, gates, measure, multiplies, page, report
from upscale_training.network import Architecture, Network
from upscale_training.sheet import GAP

MARKS = {"bicubic": 30.0, "lanczos3": 30.2, "matched": 33.5, "unknown": 33.0, "mismatched": 31.0, "plain": 33.6}


def test_every_damage_keeps_the_place_and_says_what_it_was():
    clean = drawn_picture(3, 96, 96)
    seen = set()
    for damage in DAMAGES:
        small = damage.make(clean, 2)
        assert small.shape == (48, 48, 3) and small.dtype == np.uint8
        assert np.corrcoef(small.ravel(), clean[::2, ::2].ravel())[0, 1] > 0.8
        assert (damage.matched == CLEAN) == (damage.name in ("clean", "box"))
        assert conditions(damage)["unknown"] == UNKNOWN and damage.mismatched != damage.matched
        seen.add(small.tobytes())
    assert len(seen) == len(DAMAGES)


def test_drawn_sets_are_the_same_every_time():
    one, other = drawn_sets(1, 64), drawn_sets(1, 64)
    assert [len(one[name]) for name in ("text", "graphics")] == [2, 3]
    assert all(np.array_equal(a, b) for name in one for a, b in zip(one[name], other[name], strict=True))


@pytest.mark.parametrize(
    "change, missed", [({}, 0), ({"mismatched": 29.9}, 1), ({"matched": 32.9}, 2), ({"plain": 33.8}, 1)]
)
def test_the_gates_of_text_at_2x_catch_what_they_are_for(change, missed):
    demands = gates({("text", "clean"): MARKS | change}, 2)
    assert sum(not demand.passed for demand in demands) == missed


def test_the_truth_must_not_be_worse_than_knowing_nothing():
    assert not all(demand.passed for demand in gates({("x", "JPEG 50"): MARKS | {"unknown": 33.6}}, 2))
    assert not all(demand.passed for demand in gates({("x", "JPEG 50"): MARKS | {"matched": 30.8, "unknown": 30.8}}, 4))


def test_a_bicubic_network_has_bicubics_marks():
    shape = Architecture(2, 4, 1, conditioned=True)
    found = measure({"x": [drawn_picture(1, 48, 48)]}, Network(shape), stirred(replace(shape, conditioned=False)))
    marks = found["x", "clean"]
    assert marks["matched"] == marks["mismatched"] == marks["unknown"] == pytest.approx(marks["bicubic"], abs=0.5)
    assert marks["matched"] != marks["plain"]
    text = report(found, "t", 2)
    assert "| x | JPEG 30 |" in text and "gates passed" in text
    networks = [Network(shape), Network(replace(shape, scale=4))]
    whole = page([("t", 2, found), ("u", 4, found)], networks)
    cost = " / ".join(f"{multiplies(network):.1f}" for network in networks)
    assert f"| **t, u** | {cost} | - | - |" in whole and whole.count("| x | clean |") == 2
    found["x", "clean"]["mismatched"] = 0.0
    assert "Missed:" in report(found, "t", 2)


def test_a_gate_prints_what_was_asked():
    assert Gate("a", 1.0, 2.0).row() == "| a | +1.00 | +2.00 | **no** |"


def test_a_contact_sheet_shows_four_versions_of_every_picture():
    pictures = [drawn_picture(seed, 64, 64) for seed in (1, 2)]
    shown = sheet(pictures, Network(Architecture(2, 4, 1, conditioned=True)), 40, ("clean", "JPEG 30"))
    assert shown.shape == (2 * (40 + LINE), 4 * 40 + 3 * GAP, 3)
    original = shown[LINE : LINE + 40, -40:]
    assert np.array_equal(original, pictures[0][12:52, 12:52])


def test_multiplies_are_counted_for_a_picture_of_1280_by_720():
    weights = 8 * 3 * 9 + 3 * 8 * 8 * 9 + 8 * 8 * 9 + 8 * 32 + 48 * 8 * 9
    assert multiplies(Network(Architecture(4, 8, 1))) == pytest.approx(weights * 320 * 180 / 1e9)
