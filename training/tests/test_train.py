from dataclasses import replace

import numpy as np
import pytest
import torch

from conftest import drawn_picture
from upscale_training.data import Pictures
from upscale_training.evaluate import compare, interpolate, network_enlarger
from upscale_training.resize import resize_8bit
from upscale_training.train import Recipe, Run, read_recipe, train

TOY = Recipe(name="toy", scale=2, steps=800, channels=16, blocks=2, batch=4, patch_sides=(24,), warm_up_steps=20)

GATED = replace(TOY, arch="span", activation="silu", input_scale=255.0)


def state_of(run: Run) -> list[torch.Tensor]:
    moments = [value for slot in run.adam.state.values() for value in slot.values()]
    return [*run.network.state_dict().values(), *run.average.state_dict().values(), *moments]


def test_a_resumed_run_ends_in_the_same_state(picture_folder, tmp_path):
    pictures, recipe = Pictures(picture_folder, tmp_path / "cache", 2), replace(TOY, steps=12, warm_up_steps=3)
    whole = Run(recipe, "cpu")
    train(whole, pictures, tmp_path / "whole.pt", 12)
    train(Run(recipe, "cpu"), pictures, tmp_path / "halves.pt", 5)
    resumed = Run(replace(recipe, seed=recipe.seed), "cpu")
    resumed.restore(tmp_path / "halves.pt")
    assert resumed.step == 5
    train(resumed, pictures, tmp_path / "halves.pt", 12)
    assert all(torch.equal(one, other) for one, other in zip(state_of(whole), state_of(resumed), strict=True))


@pytest.mark.parametrize("recipe", [TOY, GATED])
def test_a_toy_run_beats_bicubic_on_a_picture_it_never_saw(picture_folder, tmp_path, recipe):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2), Run(recipe, "cpu")
    train(run, pictures, tmp_path / "toy.pt", recipe.steps)
    clean = drawn_picture(50)
    small = resize_8bit(clean, 96, 96)
    bicubic, _ = compare(clean, interpolate("bicubic")(small, 2), 2)
    ours, _ = compare(clean, network_enlarger(run.average)(small, 2), 2)
    assert ours > bicubic + 0.5


@pytest.mark.parametrize("bf16_share", [0.0, 1.0])
def test_two_lanes_find_the_gradients_of_one(picture_folder, tmp_path, bf16_share):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    found = []
    for lanes in (1, 2):
        run = Run(replace(TOY, batch=5, lanes=lanes, bf16_share=bf16_share), "cpu")
        torch.nn.init.constant_(run.network.up.weight, 0.01)
        run.gradients(*pictures.batch(1, 1, 5, 24))
        found.append(torch.cat([parameter.grad.flatten() for parameter in run.network.parameters()]))
    # bfloat16 keeps 8 bits; each lane rounds its own sums.
    assert (found[0] - found[1]).norm() < (2e-2 if bf16_share else 1e-5) * found[0].norm()


def test_a_4x_network_starts_from_the_trunk_of_a_2x_one(tmp_path):
    torch.manual_seed(3)
    two = Run(TOY, "cpu")
    two.save(tmp_path / "two.pt")
    recipe = replace(TOY, scale=4, seed=9, start_from=str(tmp_path / "two.pt"))
    four = Run(recipe, "cpu").network.state_dict()
    for key, value in two.average.state_dict().items():
        assert key.startswith("up.") or torch.equal(value, four[key])
    with pytest.raises((ValueError, RuntimeError)):
        Run(replace(recipe, blocks=3), "cpu")


def test_the_rate_warms_up_and_falls_to_its_end():
    rates = [TOY.rate(step) for step in range(TOY.steps + 1)]
    assert np.argmax(rates) in (19, 20) and rates[20] == pytest.approx(TOY.rate_peak)
    assert np.all(np.diff(rates[:20]) > 0) and np.all(np.diff(rates[20:]) < 0)
    assert rates[-1] == pytest.approx(TOY.rate_end)


def test_patches_grow_and_precision_rises_with_the_steps():
    recipe = replace(TOY, steps=9, patch_sides=(32, 48, 64), bf16_share=0.5)
    assert [recipe.patch_side(step) for step in range(9)] == [32] * 3 + [48] * 3 + [64] * 3
    assert [recipe.bf16(step) for step in range(9)] == [True] * 5 + [False] * 4


def test_a_recipe_is_read_and_a_misspelt_one_refused(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('name = "t"\nscale = 2\nsteps = 10\npatch_sides = [16, 24]\n')
    assert read_recipe(path) == Recipe(name="t", scale=2, steps=10, patch_sides=(16, 24))
    path.write_text('name = "t"\nscale = 2\nsteps = 10\nlearning_rat = 1.0\n')
    with pytest.raises(ValueError, match="learning_rat"):
        read_recipe(path)
