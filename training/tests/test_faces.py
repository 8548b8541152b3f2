"""Faces: who is trained on and who is judged, what a patch is, whose face a face is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from upscale_training import face_sheet
from upscale_training.by_condition import ByConditionRun, shows_little
from upscale_training.condition import CLEAN, jpeg_condition, source_inputs
from upscale_training.contact import LINE
from upscale_training.data import read_picture
from upscale_training.face_gates import DAMAGES, MARGIN_KEPT_MIN, around, eye_band, grid
from upscale_training.faces import JITTER, FaceRun, Faces, landmarks, read_portraits
from upscale_training.identity import margins, rank_one
from upscale_training.invented import invented
from upscale_training.mixture import Group
from upscale_training.recipe import Recipe
from upscale_training.resize import resize_8bit
from upscale_training.sheet import GAP

MARKS = "80,100,140,100,110,140,88,170,132,170"


def person(seed: int) -> np.ndarray:
    """A picture as large as a portrait, with spots that no one else has."""
    coarse = np.random.default_rng(seed).integers(40, 220, (34, 28, 3), dtype=np.uint8)
    return resize_8bit(coarse, 275, 225)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "portraits").mkdir()
    lines = ["file\tlicence\tright_eye_x,y,left_eye_x,y,nose_x,y,mouth_r_x,y,mouth_l_x,y (in file)"]
    for number in range(12):
        name = f"portraits/{number}.png"
        Image.fromarray(person(number)).save(tmp_path / name)
        lines.append(f"{name}\tpublic domain\t{MARKS}")
    (tmp_path / "SOURCES.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_nobody_is_on_both_sides_and_a_longer_list_moves_nobody(folder: Path) -> None:
    before = {one.file: one.is_held_out() for one in read_portraits(folder)}
    assert 0 < sum(before.values()) < len(before)
    with open(folder / "SOURCES.tsv", "a") as file:
        file.write(f"portraits/new.png\tpublic domain\t{MARKS}\n")
    after = {one.file: one.is_held_out() for one in read_portraits(folder)}
    assert before.items() <= after.items()


def test_only_those_who_are_not_held_out_are_trained_on(folder: Path) -> None:
    recipe = Recipe("face", 4, 1, patch_sides=(32,))
    faces = Faces(folder, folder / "cache", recipe)
    trained = [one for one in read_portraits(folder) if not one.is_held_out()]
    assert len(faces.packed) == len(trained)
    for at, one in enumerate(trained):
        assert np.array_equal(faces.packed[at], read_picture(folder / one.file))


def test_a_patch_lies_round_the_face_and_depends_on_the_draw_alone(folder: Path) -> None:
    faces = Faces(folder, folder / "cache", Recipe("face", 2, 1, patch_sides=(32,)))
    one, same = (faces.patches(np.random.default_rng(3), 4, 112) for _ in range(2))
    assert one.shape == (4, 3, 112, 112) and bool((one == same).all())
    assert float(one.min()) >= 0.0 and float(one.max()) <= 1.0


MIDDLE = np.array([[112.0, 130.0]])


def test_an_invented_face_keeps_its_place_and_its_detail_and_is_never_the_same() -> None:
    picture = torch.full((1, 3, 275, 225), 0.2)
    yy, xx = torch.meshgrid(torch.arange(275), torch.arange(225), indexing="ij")
    picture[:, :, (yy - 130) ** 2 + (xx - 112) ** 2 < 100] = 0.9
    places = (torch.arange(112) - 55.5) / 112.0
    seen = [invented([picture], MIDDLE, 112, JITTER, np.random.default_rng(seed)) for seed in range(20)]
    for one, other in pairwise(seen):
        assert one.shape == (1, 3, 112, 112) and 0.0 <= float(one.min()) <= float(one.max()) <= 1.0
        assert float((one - other).abs().max()) > 0.2
        disc = one[0].mean(dim=0) - one.median()
        disc = disc.clamp(min=0.1) - 0.1
        for line in (disc.sum(dim=0), disc.sum(dim=1)):
            assert abs(float((line * places).sum() / line.sum())) < JITTER + 0.05
    fine = torch.from_numpy(person(1)).permute(2, 0, 1)[None].float() / 255.0
    steepest = [
        float(invented([fine], MIDDLE, 112, 0.0, np.random.default_rng(s)).diff(dim=3).abs().max()) for s in range(9)
    ]
    assert np.median(steepest) > 0.8 * float(fine.diff(dim=3).abs().max()), steepest


def test_a_face_that_is_not_changed_is_the_portrait_to_the_last_level(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TURNED", "STRETCHED", "MOVED", "GAMMA", "TINT", "SATURATION"):
        monkeypatch.setattr(f"upscale_training.invented.{name}", 0.0)
    monkeypatch.setattr("upscale_training.invented.SHRUNK", (0.0, 0.0))
    picture = person(2)
    whole = torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255.0
    for seed in range(8):
        made = invented([whole], np.array([[111.5, 129.5]]), 100, 0.0, np.random.default_rng(seed))
        upright = (made[0].permute(1, 2, 0).numpy() * 255.0).round()
        cut = picture[80:180, 62:162]
        assert any(np.array_equal(one, cut) for one in (upright, upright[:, ::-1])), seed


def test_faces_made_together_are_each_from_its_own_portrait() -> None:
    wholes = [torch.full((1, 3, 275 + 9 * n, 225 + 7 * n), 0.1 * n) for n in range(1, 10)]
    made = invented(wholes, np.repeat(MIDDLE, 9, axis=0), 64, JITTER, np.random.default_rng(7))
    means = made.mean(dim=(1, 2, 3))
    assert bool((means[1:] > means[:-1] - 0.25).all()) and float(means[-1] - means[0]) > 0.5
    assert float(made.std(dim=(2, 3)).max()) < 1e-5


ESTIMATOR = "../crates/upscale_image/weights/estimate.safetensors"
SMALL = {"channels": 8, "blocks": 1, "conditioned": True, "inputs": 6, "estimator": ESTIMATOR, "patch_sides": (32,)}


def test_a_step_sees_faces_under_many_damages_and_learns_from_them(folder: Path) -> None:
    recipe = Recipe("face", 4, 2, warm_up_steps=1, scenes=12, crops=2, **SMALL)
    faces, run = Faces(folder, folder / "cache", recipe), FaceRun(recipe, "cpu")
    seen = run.groups(faces)
    assert [share for _, share in seen] == [1.0 / 12.0] * 12
    assert all(group.small.shape == (2, 3, 32, 32) and group.condition.shape == (6,) for group, _ in seen)
    harms = sorted(harm(group) for group, _ in seen)
    assert harms[-1] > 2.0 * harms[0] > 0.0, harms
    before = run.network.up.weight.clone()
    run.step_on(faces)
    assert not torch.equal(run.network.up.weight, before)


def test_faces_are_asked_for_contrast_if_the_recipe_says_so(folder: Path) -> None:
    recipe = Recipe("face", 2, 2, scenes=2, psnr_share=1.0, contrast=0.5, **SMALL)
    (group, _), *_ = FaceRun(recipe, "cpu").groups(Faces(folder, folder / "cache", recipe))
    smooth = torch.nn.functional.avg_pool2d(group.clean, 5, 1, 2)
    asked, not_asked = (FaceRun(one, "cpu").loss(smooth, group) for one in (recipe, replace(recipe, contrast=0.0)))
    assert asked > not_asked + 0.01
    assert FaceRun(recipe, "cpu").loss(group.clean, group) == recipe.loss(0, group.clean, group.clean)


def harm(group: Group) -> float:
    """How far the small pictures are from what they were shrunk from."""
    return float(
        (torch.nn.functional.avg_pool2d(group.clean, group.clean.shape[-1] // group.small.shape[-1]) - group.small)
        .abs()
        .mean()
    )


def test_a_face_is_nearest_to_itself_when_blurred_and_to_another_when_exchanged() -> None:
    people = [person(seed) for seed in range(8)]
    blurred = [resize_8bit(resize_8bit(one, 68, 56), 275, 225) for one in people]
    assert rank_one(people, blurred) == 1.0
    assert rank_one(people, blurred[1:] + blurred[:1]) == 0.0


def test_grain_hardly_changes_a_margin_and_a_quarter_of_another_face_does() -> None:
    people = [person(seed) for seed in range(8)]
    apart = margins(people, people)
    noise = np.random.default_rng(1)
    grainy = [np.clip(one + noise.normal(0.0, 2.0, one.shape), 0, 255).astype(np.uint8) for one in people]
    assert (margins(people, grainy) / apart).min() > MARGIN_KEPT_MIN
    others = [*people[1:], people[0]]
    mixed = [(0.75 * one + 0.25 * other).astype(np.uint8) for one, other in zip(people, others, strict=True)]
    assert (margins(people, mixed) / apart).min() < MARGIN_KEPT_MIN


def test_the_boxes_hold_the_landmarks() -> None:
    marks = landmarks({"right_eye_x": MARKS})
    for part, inside in ((around(marks), marks), (eye_band(marks), marks[:2])):
        for x, y in inside:
            assert part[0].start <= y < part[0].stop and part[1].start <= x < part[1].stop


def test_what_repeats_with_every_source_pixel_is_a_grid_and_nothing_else_is() -> None:
    plain = np.full((80, 72, 3), 128, np.uint8)
    whole = (slice(0, 80), slice(0, 72))
    drawn = plain.copy()
    drawn[::4] += 4
    assert grid((plain, drawn), whole, 4) > 1.0
    # Brighter all over, and changed where it may be: neither is one.
    spots = np.random.default_rng(1).integers(-4, 5, plain.shape)
    assert grid((plain, plain + 9), whole, 4) == 0.0
    assert grid((plain, (plain + spots).astype(np.uint8)), whole, 4) < 0.3


def test_the_sheet_shows_every_person_in_four_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def enlarge(program: Path, file: bytes, scale: int, faces: bool) -> tuple[np.ndarray, int]:
        asked.append(faces)
        return np.full((68 * scale, 56 * scale, 3), 200 if faces else 100, np.uint8), int(faces)

    monkeypatch.setattr(face_sheet, "enlarge", enlarge)
    people = [(person(seed)[:272, :224], landmarks({"right_eye_x": MARKS})) for seed in range(2)]
    drawn = face_sheet.sheet(Path("program"), people, 4)
    assert asked == [False, True, False, True]
    height, width = 224 + LINE, 224 + GAP
    assert drawn.shape == (2 * height, 4 * width - GAP, 3)
    assert (drawn[LINE:height, width : width + 224] == 100).all()
    assert (drawn[LINE:height, 2 * width : 2 * width + 224] == 200).all()
    top, left, side = face_sheet.window(*people[1])
    original = people[1][0][top : top + side, left : left + side]
    assert np.array_equal(drawn[height + LINE :, 3 * width :], original)


def test_every_damage_is_a_file_that_can_be_read() -> None:
    import io

    small = resize_8bit(person(1), 68, 56)
    for name, damage in DAMAGES.items():
        with Image.open(io.BytesIO(damage(small))) as image:
            read = np.asarray(image.convert("RGB"))
        assert read.shape == small.shape
        assert np.array_equal(read, small) == (name == "clean"), name


def test_by_the_condition_alone_noisy_and_soft_faces_change_and_others_are_held(folder: Path, tmp_path: Path) -> None:
    # A network that hears its condition: what ships.
    start = "../crates/upscale_engine/weights/face-x4.safetensors"
    shape = SMALL | {"channels": 48, "blocks": 6, "start_from": start}
    recipe = Recipe("face", 4, 9, warm_up_steps=1, scenes=6, crops=1, weave=0.1, critic=0.01, contrast=0.1, **shape)
    run, faces = ByConditionRun(recipe, "cpu"), Faces(folder, folder / "cache", recipe)
    seen = [(group, shows_little(group.condition, 4)) for _ in range(3) for group, _ in run.groups(faces)]
    assert {little for _, little in seen} == {False, True}
    for group, little in seen:
        with torch.no_grad():
            output = run.network(group.small, group.condition)
        loss = float(run.loss(output.requires_grad_(), group).detach())
        assert (loss == 0.0) != little, (loss, little)
    before = {name: value.clone() for name, value in run.network.named_parameters()}
    run.step_on(faces)
    changed = {name for name, value in run.network.named_parameters() if not torch.equal(value, before[name])}
    assert changed and all(name.startswith("cond.") for name in changed), changed


def test_what_counts_as_noisy_or_soft() -> None:
    told = {one: shows_little(torch.tensor((*CLEAN, *source_inputs(*one))), 4) for one in WORDS}
    assert told == WORDS
    noisy = source_inputs(9.0, 0.0)
    by_quality = {q: [shows_little(torch.tensor((*jpeg_condition(q, 1.0), *noisy)), s) for s in (2, 4)] for q in JPEGS}
    assert by_quality == JPEGS


# Whether a noisy JPEG of a quality counts at 2x and at 4x.
JPEGS = {30: [True, False], 60: [False, False], 90: [True, True]}
WORDS = {(0.0, 0.0): False, (7.0, 0.7): False, (9.0, 0.0): True, (0.0, 0.8): True, (None, None): False}
