"""The gates of large faces, on marks made up here."""

from __future__ import annotations

import numpy as np

from upscale_training.face_gates import Mark
from upscale_training.large_face_gates import gates, line


def mark(detail: tuple[float, float], back: float = 0.0, grid: float = 0.02) -> Mark:
    black = np.zeros((8, 8, 3), np.uint8)
    return Mark(1, (30.0, 29.5), (28.0, 27.8), (40.0, 40.0 + back), grid, 0.0, detail, 1.2, (black, black))


def failed(damage: str, marks: list[Mark], ranks: list[float]) -> list[str]:
    return [text for text, holds in gates(damage, marks, ranks, 4) if not holds]


def test_a_crisper_face_that_stays_itself_holds_every_gate() -> None:
    marks = [mark((0.3, 0.4)), mark((0.4, 0.5))]
    assert failed("clean", marks, [1.0, 1.0]) == []
    assert line("clean", marks, [1.0, 1.0]) == "| clean | 2/2 | -0.50 | -0.20 | 1.000 | 1.000 | 0.35 | 0.45 | 1.2 |"


def test_each_fault_fails_its_own_gate() -> None:
    fine = mark((0.4, 0.6))
    assert failed("JPEG 70", [mark((0.4, 0.44))], [1.0, 1.0]) == ["JPEG 70: fine detail x 1.10, at least x 1.20"]
    assert failed("JPEG 70", [fine], [1.0, 0.9]) == ["JPEG 70: rank 1 0.900, at least 1.000"]
    assert failed("JPEG 70", [mark((0.4, 0.6), back=-0.6)], [1.0, 1.0]) == [
        "JPEG 70: shrunk again 39.40 dB, at least 39.50"
    ]
    assert failed("JPEG 70", [mark((0.4, 0.6), grid=0.2)], [1.0, 1.0]) == [
        "JPEG 70: a grid of 0.20 levels, at most 0.1"
    ]


def test_a_sharper_face_may_be_further_from_a_source_that_it_nearly_was() -> None:
    near = Mark(1, (30.0, 30.0), (28.0, 28.0), (60.0, 46.0), 0.0, 0.0, (0.3, 0.5), 1.0, mark((0.0, 0.0)).pictures)
    assert failed("clean", [near], [1.0, 1.0]) == []


def test_noisy_and_soft_faces_need_not_be_sharper() -> None:
    assert failed("noise 5", [mark((0.4, 0.4))], [1.0, 1.0]) == []
