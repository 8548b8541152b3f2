"""Weight files and what stands beside them, those in the repository included."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from test_network import stirred
from upscale_training.export import card, export, golden_input, mixed, receptive_radius
from upscale_training.look_gates import LOOKS
from upscale_training.network import Architecture, Network, between, in_bytes, tier
from upscale_training.recipe import Recipe
from upscale_training.train import Run
from upscale_training.weights import load_weights, save_weights

SHIPPED = Path(__file__).parents[2] / "crates" / "upscale_engine" / "weights"


def save(network: Network, path: Path, dtype: torch.dtype = torch.float32) -> None:
    save_weights(network, path, name="t", commit="none", steps=3, dtype=dtype)


TOLD = replace(tier("f", 2), conditioned=True)


@pytest.mark.parametrize("shape", [tier("f", 2), tier("f", 4, "span"), TOLD])
def test_a_network_comes_back_from_its_file(shape, tmp_path):
    network, small = stirred(shape), torch.rand(1, 3, 9, 7)
    save(network, tmp_path / "t.safetensors")
    again, metadata = load_weights(tmp_path / "t.safetensors")
    assert again.architecture == shape and metadata["steps"] == "3"
    assert torch.equal(again(small), network(small))


def test_the_same_weights_are_the_same_file(tmp_path):
    network = stirred(TOLD)
    first, second = tmp_path / "1.safetensors", tmp_path / "2.safetensors"
    for path in (first, second):
        save(network, path)
    assert first.read_bytes() == second.read_bytes()


def test_half_floats_change_the_picture_by_less_than_a_quarter_of_a_level(tmp_path):
    network, small = stirred(tier("f", 2)), torch.rand(1, 3, 32, 32)
    save(network, tmp_path / "t.safetensors", torch.float16)
    again, _ = load_weights(tmp_path / "t.safetensors")
    assert (again(small) - network(small)).abs().max() < 0.25 / 255


def test_a_file_of_another_format_is_refused(tmp_path):
    save_file({"head.weight": torch.zeros(1)}, tmp_path / "t.safetensors", {"format": "other-9"})
    with pytest.raises(ValueError, match="other-9"):
        load_weights(tmp_path / "t.safetensors")


def test_the_receptive_field_is_the_one_on_the_card():
    shape = Architecture(2, 4, 2)
    network, small = stirred(shape).double(), torch.rand(1, 3, 41, 41, dtype=torch.float64)
    network.base = network.base.double()
    small.requires_grad_()
    network(small)[0, :, 40:42, 40:42].sum().backward()
    reached = small.grad[0].abs().sum(0).nonzero()[:, 0]
    assert 20 - reached.min() == receptive_radius(shape)


@pytest.mark.parametrize("conditioned", [False, True])
def test_an_export_is_whole(conditioned, picture_folder, tmp_path):
    recipe = Recipe(name="t", scale=2, steps=5, channels=4, blocks=1, conditioned=conditioned)
    run = Run(recipe, "cpu")
    for value in run.average.parameters():
        torch.nn.init.normal_(value, std=0.05)
    run.save(tmp_path / "t.pt")
    path, recipe, state = export(tmp_path / "t.pt", tmp_path, "none")
    golden = load_file(tmp_path / "t.golden.safetensors")
    network, _ = load_weights(path)
    golden_holds(network, golden)
    text = card(path, recipe, state, picture_folder, "none", "figures")
    assert "6 clean pictures: diagram 3, art 3. Their licences: CC0-1.0 6." in text


def test_a_mix_lies_between_its_ends():
    start, end = stirred(tier("f", 2)), stirred(TOLD)
    torch.nn.init.normal_(end.cond[2].bias)
    half = mixed(end.state_dict(), start, 0.5, start)
    for key, value in end.state_dict().items():
        other = start.state_dict().get(key, torch.zeros_like(value) if key.startswith("cond.2.") else value)
        torch.testing.assert_close(half[key], (value + other) / 2)


def golden_holds(network: Network, golden: dict[str, torch.Tensor]) -> None:
    given = [torch.zeros(network.architecture.inputs), *golden.get("conditions", [])]
    names = ["output", *(f"output.{index}" for index in range(len(given) - 1))]
    assert set(golden) - {"conditions"} == {"input", *names}
    network = in_bytes(network)
    for condition, name in zip(given, names, strict=True):
        torch.testing.assert_close(network.upscale(golden["input"], condition), golden[name], atol=1e-5, rtol=0.0)


def test_layers_of_a_look_ship_without_a_condition_and_are_golden_in_the_natural_look(picture_folder, tmp_path):
    run = Run(Recipe(name="t", scale=2, steps=5, channels=4, blocks=1, conditioned=True), "cpu")
    with torch.no_grad():
        for value in run.average.parameters():
            torch.nn.init.normal_(value, std=0.05)
    run.save(tmp_path / "t.pt")
    whole, _, _ = export(tmp_path / "t.pt", tmp_path / "whole", "none")
    with torch.no_grad():
        run.average.up.bias += 0.25
    run.save(tmp_path / "t.pt")
    path, recipe, state = export(tmp_path / "t.pt", tmp_path / "layers", "none", mixed_into=whole)
    text = card(path, recipe, state, picture_folder, "none", "figures", whole)
    assert "- condition: none\n" in text and "the output of t in the natural look" in text
    assert "teachers" not in text
    assert "teachers" in card(path, recipe, state | {"run": "ApartRun"}, picture_folder, "none", "figures", whole)
    (network, _), (layers, metadata) = load_weights(whole), load_weights(path)
    assert "condition" not in metadata and not layers.architecture.conditioned
    natural = between(network, layers, LOOKS[network.architecture.scale]["natural"])
    golden_holds(natural, load_file(tmp_path / "layers" / "t.golden.safetensors"))
    np.testing.assert_allclose((layers.up.bias - network.up.bias).detach(), 0.25, atol=1e-3)


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("kind", ["f", "s", "face", "restore", "crisp"])
def test_the_shipped_files_belong_together(kind, scale):
    name = f"{kind}-x{scale}"
    network, metadata = load_weights(SHIPPED / f"{name}.safetensors")
    if kind == "crisp":
        network = between(load_weights(SHIPPED / f"restore-x{scale}.safetensors")[0], network, LOOKS[scale]["natural"])
    digest = hashlib.sha256((SHIPPED / f"{name}.safetensors").read_bytes()).hexdigest()
    assert digest in (SHIPPED / f"{name}.md").read_text(encoding="utf-8")
    golden = load_file(SHIPPED / f"{name}.golden.safetensors")
    assert metadata["name"] == name and int(metadata["steps"]) > 0
    assert torch.equal(golden["input"], golden_input())
    golden_holds(network, golden)
    assert (golden["output"] - Network(network.architecture).upscale(golden["input"])).abs().max() > 0.01
