import ctypes
import itertools
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from conftest import drawn_picture
from upscale_training.condition import CLEAN, jpeg_condition
from upscale_training.data import Pictures
from upscale_training.degrade import jpeg
from upscale_training.evaluate import compare, interpolate, network_enlarger, read_network
from upscale_training.muon import Muon
from upscale_training.network import Network
from upscale_training.recipe import Recipe, read_recipe
from upscale_training.resize import resize_8bit, to_8bit
from upscale_training.scenes import kinds_of
from upscale_training.shard import write_shard
from upscale_training.train import Run, cooling, main, options, train
from upscale_training.weights import save_weights

CONFIGS = Path(__file__).parents[1] / "configs"
TOY = Recipe(name="toy", scale=2, steps=600, channels=16, blocks=2, batch=4, patch_sides=(24,), warm_up_steps=20)

GATED = replace(TOY, steps=800, arch="span", activation="silu", input_scale=255.0)
# What ships: conditioned on the file, JPEG among the patches, the inner convolutions by Muon.
TOLD = replace(TOY, conditioned=True, damaged=4, damaged_groups=2, muon=True, pages=4)
# Conditioned on the picture as well, by the estimator; at a constant rate.
ESTIMATOR = CONFIGS.parents[1] / "crates/upscale_image/weights/estimate.safetensors"
HEARD = replace(
    TOY,
    conditioned=True,
    inputs=6,
    scenes=3,
    crops=2,
    estimator=str(ESTIMATOR),
    constant=True,
    muon=True,
    psnr_share=1.0,
)
# Four groups, two for each of two processes.
SHARED = replace(TOLD, clean_groups=2, warm_up_steps=3, steps=12)


def state_of(run: Run) -> list[torch.Tensor]:
    slots = [slot for optimiser in run.optimisers for slot in optimiser.state.values()]
    moments = [value for slot in slots for value in slot.values()]
    return [*run.network.state_dict().values(), *run.average.state_dict().values(), *moments]


@pytest.mark.parametrize("toy", [TOY, TOLD, HEARD])
@pytest.mark.usefixtures("small_scenes")
def test_a_resumed_run_ends_in_the_same_state(toy, picture_folder, tmp_path):
    pictures, recipe = Pictures(picture_folder, tmp_path / "cache", 2), replace(toy, steps=12, warm_up_steps=3)
    whole = Run(recipe, "cpu")
    train(whole, pictures, tmp_path / "whole.pt", 12)
    train(Run(recipe, "cpu"), pictures, tmp_path / "halves.pt", 5)
    resumed = Run(replace(recipe, seed=recipe.seed), "cpu")
    resumed.restore(tmp_path / "halves.pt")
    assert resumed.step == 5
    assert read_network(tmp_path / "halves.pt")[1] == {"name": "toy, 5 steps"}
    train(resumed, pictures, tmp_path / "halves.pt", 12)
    assert all(torch.equal(one, other) for one, other in zip(state_of(whole), state_of(resumed), strict=True))
    kept = read_network(tmp_path / "halves.pt")[0].state_dict()
    assert all(torch.equal(value, kept[name]) for name, value in whole.average.state_dict().items())


@pytest.mark.usefixtures("small_scenes")
def test_a_run_is_cooled_beside_itself_and_goes_on_warm(picture_folder, tmp_path):
    pictures, recipe = Pictures(picture_folder, tmp_path / "cache", 2), replace(HEARD, warm_up_steps=2, steps=1000)
    train(Run(recipe, "cpu"), pictures, tmp_path / "toy.pt", 4)

    def cooled(stop_at: int) -> Run:
        run = Run(recipe, "cpu")
        run.restore(tmp_path / "toy.pt")
        path = cooling(run, tmp_path / "toy.pt", 6)
        assert path == tmp_path / "toy-cooled.pt" and (run.recipe.cool_from, run.recipe.steps) == (4, 10)
        train(run, pictures, path, stop_at)
        return run

    rates = [replace(recipe, cool_from=4, steps=10).rate(step) for step in (3, 4, 7, 10)]
    assert rates == pytest.approx([recipe.rate_peak, recipe.rate_peak, recipe.rate_peak / 2, recipe.rate_end])
    assert cooled(7).step == 7
    # Killed there, the same command goes on where it was.
    assert cooled(10).step == 10
    warm = Run(recipe, "cpu")
    warm.restore(tmp_path / "toy.pt")
    assert warm.step == 4 and warm.recipe.rate(1000) == recipe.rate_peak
    assert read_network(tmp_path / "toy-cooled.pt")[0].architecture.inputs == 6


@pytest.mark.usefixtures("small_scenes")
def test_what_a_gpu_does_in_one_batch_is_what_a_cpu_does_scene_by_scene(picture_folder, tmp_path):
    pictures, runs = Pictures(picture_folder, tmp_path / "cache", 2), [Run(HEARD, "cpu") for _ in range(2)]
    runs[1].by_sample = True
    for run in runs:
        torch.nn.init.normal_(run.network.cond[2].weight, std=0.05)
        run.network.load_state_dict(runs[0].network.state_dict())
    losses = [[run.step_on(pictures) for _ in range(3)] for run in runs]
    torch.testing.assert_close(*losses, atol=1e-4, rtol=1e-4)


def test_pictures_held_on_a_device_give_the_same_patches(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    one = pictures.patches(np.random.default_rng(6), 16, 40)
    # The processor stands in for the device: what is gathered is the same.
    pictures.resident = True
    torch.testing.assert_close(pictures.patches(np.random.default_rng(6), 16, 40), one)


@pytest.mark.usefixtures("small_scenes")
def test_a_slice_on_a_borrowed_machine_goes_on_where_the_last_one_stopped(picture_folder, tmp_path):
    assert write_shard(picture_folder, tmp_path / "shard", 1 << 30) == 6
    small = sum(path.stat().st_size for path in (tmp_path / "shard").glob("*.png")) // 2
    assert 1 <= write_shard(picture_folder, tmp_path / "half", small) <= 4
    config = tmp_path / "toy.toml"
    config.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in asdict(HEARD).items()))
    for _ in range(2):
        arguments = [f"--data={tmp_path / 'shard'}", f"--runs={tmp_path}", "--threads=1", "--minutes=0.01"]
        main([str(config), *arguments, "--device=cpu", "--resident"])
        steps = torch.load(tmp_path / "toy.pt", weights_only=True)["step"]
    assert steps > 1


@pytest.mark.usefixtures("small_scenes")
def test_scenes_are_held_cut_into_patches_and_give_way_to_newer_ones(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2, resident=True)
    run = Run(replace(HEARD, scenes=4, pool=6, reuse=2, batch=5, patch_sides=(24,)), "cpu")
    seen = []
    for _ in range(4):
        [(group, share)] = run.groups(pictures)
        assert share == 1.0 and group.small.shape == (5, 3, 24, 24) and group.clean.shape == (5, 3, 48, 48)
        # Each patch belongs to its original: shrunk, they are alike.
        near = torch.nn.functional.avg_pool2d(group.clean, 2)
        assert (near - group.small).abs().mean() < 0.1
        assert group.condition.shape == (5, 6)
        seen.append(run.pools["all"].small.clone())
        run.step += 1
    assert torch.equal(seen[0], seen[1])
    # Of six places four hold new scenes: eight were put there first, so the oldest begin at the third.
    assert [torch.equal(*pair) for pair in zip(seen[1], seen[2], strict=True)] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert run.step_on(pictures).isfinite()


@pytest.mark.usefixtures("small_scenes")
def test_a_network_that_hears_no_noise_is_held_clean_scenes_and_jpegs_alone(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2, resident=True)
    run = Run(replace(TOLD, scenes=8, pool=16, batch=4), "cpu")
    kinds = kinds_of(run.recipe.scenes, np.random.default_rng(1), run.scenes)
    assert set(kinds) == {"clean", "file"}
    (held, share), *others = run.groups(pictures)
    assert (held.condition.shape, share, others) == ((4, 4), 1.0, [])


def test_weights_of_one_shape_are_moved_together_as_each_would_be():
    torch.manual_seed(4)
    shapes = [(8, 6, 3, 3), (8, 6, 3, 3), (6, 24, 1, 1)]
    weights = [torch.randn(shape) for shape in shapes]
    together, alone = ([weight.clone().requires_grad_() for weight in weights] for _ in range(2))
    optimisers = [Muon(together, 0.1), *(Muon([weight], 0.1) for weight in alone)]
    for _ in range(3):
        for one, other in zip(together, alone, strict=True):
            one.grad = torch.randn(one.shape)
            other.grad = one.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(together, alone)
    assert not torch.allclose(together[0], weights[0])


def test_a_slice_may_cool_down_within_its_minutes(picture_folder, tmp_path, monkeypatch):
    # A clock which is a second later each time it is read: how long a step takes is the machine's affair.
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr("upscale_training.train.time", clock)
    run, pictures = Run(replace(TOY, constant=True, warm_up_steps=0), "cpu"), Pictures(picture_folder, tmp_path, 2)
    shares, step_on = [], run.step_on
    monkeypatch.setattr(run, "step_on", lambda data: [step_on(data), shares.append(run.share_of_rate)][0])
    train(run, pictures, tmp_path / "toy.pt", 1 << 20, seconds=21, cooled=0.5)
    assert shares[0] == 1.0 and shares == sorted(shares, reverse=True) and 0.0 < shares[-1] < 0.3
    assert run.optimisers[0].param_groups[0]["lr"] == shares[-1] * run.recipe.rate_peak > run.recipe.rate_end


def test_seconds_are_no_share_of_the_minutes(capsys):
    with pytest.raises(SystemExit):
        options("").parse_args(["toy.toml", "--cooled", "600"])
    assert "600 is not a share of 0 to 1" in capsys.readouterr().err


def by_processes(count: int, folder: Path, pictures: Path, steps: int) -> dict:
    """The checkpoint of a training that `count` processes share."""
    config = folder / "toy.toml"
    config.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in asdict(SHARED).items()))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    command += ["-m", "upscale_training.train", str(config), f"--data={pictures}", f"--runs={folder / str(count)}"]
    subprocess.run([*command, "--threads=1", f"--stop-at={steps}"], check=True, cwd=CONFIGS.parent, timeout=300)
    return torch.load(folder / str(count) / "toy.pt", weights_only=True)


def test_two_processes_step_as_one_does(picture_folder, tmp_path):
    one, two = (by_processes(count, tmp_path, picture_folder, 8) for count in (1, 2))
    assert one["step"] == two["step"] == 8
    # The same groups, their gradients summed in another order.
    for name, value in one["average"].items():
        torch.testing.assert_close(two["average"][name], value, atol=2e-4, rtol=1e-3)
    moved = max(
        (value - two["network"][name]).abs().max() for name, value in Run(SHARED, "cpu").network.state_dict().items()
    )
    assert moved > 5e-3


def test_a_gate_that_the_engine_lacks_is_not_written(tmp_path):
    lifted = Run(replace(TOY, arch="lifted", activation="silu"), "cpu").average
    with pytest.raises(ValueError, match="residual and span, not lifted"):
        save_weights(lifted, tmp_path / "f.safetensors", name="f", commit="", steps=0, dtype=torch.float16)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("recipe", [TOY, GATED])
def test_a_toy_run_beats_bicubic_on_a_picture_it_never_saw(picture_folder, tmp_path, recipe):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2), Run(recipe, "cpu")
    train(run, pictures, tmp_path / "toy.pt", recipe.steps)
    clean = drawn_picture(50)
    small = resize_8bit(clean, 96, 96)
    bicubic, _ = compare(clean, interpolate("bicubic")(small, 2), 2)
    ours, _ = compare(clean, network_enlarger(run.average)(small, 2), 2)
    assert ours > bicubic + 0.5


def test_a_network_that_is_told_of_jpeg_beats_bicubic_with_and_without_one(picture_folder, tmp_path):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, TOLD.pages), Run(TOLD, "cpu")
    train(run, pictures, tmp_path / "toy.pt", TOLD.steps)
    clean = drawn_picture(51)
    shrunk = torch.from_numpy(resize_8bit(clean, 96, 96)).permute(2, 0, 1)[None].float() / 255.0
    for given, damaged in (
        (CLEAN, shrunk),
        (jpeg_condition(40, 1.0), jpeg(shrunk, *map(torch.tensor, ([40], [True])))),
    ):
        small = to_8bit(damaged[0].permute(1, 2, 0).numpy())
        bicubic, _ = compare(clean, interpolate("bicubic")(small, 2), 2)
        ours, _ = compare(clean, network_enlarger(run.average, given)(small, 2), 2)
        assert ours > bicubic + 0.3


def test_a_run_goes_on_from_a_weight_file(tmp_path):
    first = Run(replace(TOY, seed=4), "cpu")
    torch.nn.init.normal_(first.average.up.weight, std=0.02)
    names = {"name": "t", "commit": "none", "steps": 1, "dtype": torch.float32}
    save_weights(first.average, tmp_path / "t.safetensors", **names)
    second = Run(replace(TOLD, channels=20, blocks=3, start_from=str(tmp_path / "t.safetensors")), "cpu")
    small = torch.rand(1, 3, 8, 8)
    torch.testing.assert_close(second.network(small), first.average(small), atol=1e-6, rtol=1e-5)
    assert second.started_from.startswith("t.safetensors, sha256 ") and first.started_from == "nothing"


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
    for wrong in (
        "steps = 1.0",
        "conditioned = 1",
        'seed = "3"',
        "patch_sides = []",
        "patch_sides = [16.0]",
        "muon = [1]",
    ):
        path.write_text(f'name = "t"\nscale = 2\n{wrong}\n')
        with pytest.raises(ValueError, match=wrong.split()[0]):
            read_recipe(path)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_config_is_whole(path):
    recipe = read_recipe(path)
    assert recipe.name == path.stem and recipe.rate(recipe.steps // 2) > recipe.rate_end
    assert Network(recipe.architecture()).architecture.scale == recipe.scale


# A block of 64 MB, twice to have room for it, then eight times again: how many pages the kernel had to find for those.
FREED = """
import resource
import numpy as np
from upscale_training.train import keep_memory
if {keeping}:
    keep_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(2):
    np.ones(1 << 23)
begun = faults()
for _ in range(8):
    np.ones(1 << 23)
print(faults() - begun)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="glibc's own doing")
def test_what_a_step_frees_is_there_for_the_next():
    def faults(keeping: bool) -> int:
        script = FREED.format(keeping=keeping)
        return int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout)

    assert faults(keeping=True) * 4 < faults(keeping=False)
