"""Files made with PyTorch, read and run by the `upscale` binary: the same pixels as PyTorch's own forward pass."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import other_networks as nets
from torch_files import save_legacy, save_safetensors, save_zip
from upscale_training.export import golden_input

ERROR_MAX = 1e-4


def verify(upscale: Path, file: Path, state: dict[str, Tensor], forward: Callable[[Tensor], Tensor]) -> dict:
    """What the binary says of a file whose network PyTorch runs as `forward`, in double precision."""
    exact = {name: tensor.double() for name, tensor in state.items()}
    small = golden_input()
    with torch.no_grad():
        large = forward(exact, small.double()).clamp(0.0, 1.0)
    assert large.std() > 0.01, "a flat picture proves nothing"
    golden = file.with_suffix(".golden.safetensors")
    save_file({"input": small, "output": large.float().contiguous()}, golden)
    command = [upscale, "model", "verify", file, "--golden", golden, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    error = report["verified"]["golden_error"]
    print(f"{file.name}: {error:.1e} from PyTorch")
    assert error <= ERROR_MAX
    return report["model"]


def peak_bytes(command: list) -> int:
    """Of the command. A small process starts it: Linux counts what was there before `exec`, else all of PyTorch."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    small = [sys.executable, "-S", "-c", program, *command]
    return int(subprocess.run(small, capture_output=True, text=True, check=True).stdout) * 1024


def rrdb(names: nets.Names, blocks: int, read: int) -> tuple[dict, Callable]:
    state = nets.make_rrdb(names, blocks, read)
    return state, lambda weights, x: nets.run_rrdb(weights, names, x)


RRDB = {
    "old names, 4x": (nets.old_names(2, 2), 3, 4),
    "old names, 2x": (nets.old_names(2, 1), 3, 2),
    "new names, 4x": (nets.new_names(2), 3, 4),
    "new names, 2x of squares": (nets.new_names(2), 12, 2),
    "bsrgan names, 4x": (nets.bsrgan_names(2), 3, 4),
    "bsrgan names, 2x": (nets.bsrgan_names(1), 3, 2),
}


@pytest.mark.parametrize("case", RRDB)
def test_esrgan(case: str, upscale: Path, tmp_path: Path) -> None:
    names, read, scale = RRDB[case]
    state, forward = rrdb(names, 2, read)
    file = tmp_path / "esrgan.pth"
    save_zip({"params_ema": state}, file)
    report = verify(upscale, file, state, forward)
    assert report["scale"] == scale
    assert report["architecture"].startswith("ESRGAN")


# RealESRGAN_x4plus, the form that most published files have: 67 MB of numbers, and as much again while they are read.
PUBLISHED = {"blocks": 23, "channels": 64, "growth": 32}
PEAK_BYTES_MAX = 512 << 20


def test_esrgan_of_the_published_size_in_bounded_memory(upscale: Path, tmp_path: Path) -> None:
    named = nets.new_names(2)
    state = nets.make_rrdb(named, read=3, **PUBLISHED)
    file = tmp_path / "x4plus.pth"
    save_zip({"params_ema": state}, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_rrdb(weights, named, x))
    assert (report["scale"], report["parameters"]) == (4, 16_697_987)
    peak = peak_bytes([upscale, "model", "verify", file])
    print(f"{file.stat().st_size >> 20} MiB of file, {peak >> 20} MiB at the peak")
    assert peak <= PEAK_BYTES_MAX


@pytest.mark.parametrize("scale", [2, 4])
def test_compact(scale: int, upscale: Path, tmp_path: Path) -> None:
    state = nets.make_compact(scale)
    file = tmp_path / "compact.pth"
    save_legacy({"params": state, "epoch": 3}, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_compact(weights, scale, x))
    assert (report["scale"], report["architecture"]) == (scale, "Compact (SRVGGNetCompact)")


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("normed", [True, False])
def test_span(scale: int, normed: bool, upscale: Path, tmp_path: Path) -> None:
    state = nets.make_span(scale, normed=normed)
    file = tmp_path / "span.safetensors"
    save_safetensors(state, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_span(weights, scale, x))
    assert (report["scale"], report["architecture"]) == (scale, "SPAN")


def test_span_of_merged_kernels_alone(upscale: Path, tmp_path: Path) -> None:
    state = nets.merged_span(nets.make_span(4))
    file = tmp_path / "span.pth"
    save_zip({"params": state}, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_span(weights, 4, x))
    assert (report["scale"], report["architecture"]) == (4, "SPAN")


@pytest.mark.parametrize("scale", [1, 2, 4])
@pytest.mark.parametrize("family", ["SPAN-F", "ArtCNN"])
def test_the_younger_families(family: str, scale: int, upscale: Path, tmp_path: Path) -> None:
    make, run = {
        "SPAN-F": (nets.make_span_f, nets.run_span_f),
        "ArtCNN": (nets.make_artcnn, nets.run_artcnn),
    }[family]
    state = make(scale)
    file = tmp_path / "model.pth"
    save_zip({"params_ema": state}, file)
    report = verify(upscale, file, state, lambda weights, x: run(weights, scale, x))
    assert (report["scale"], report["architecture"]) == (scale, family)


@pytest.mark.parametrize("groups", [(2,), (0, 1)])
@pytest.mark.parametrize("scale", [1, 2, 4])
def test_span_plus(scale: int, groups: tuple[int, ...], upscale: Path, tmp_path: Path) -> None:
    state = nets.make_span_plus(scale, groups)
    file = tmp_path / "span-plus.safetensors"
    save_safetensors(state, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_span_plus(weights, scale, x))
    assert (report["scale"], report["architecture"]) == (scale, "SPANPlus")


def test_span_plus_of_merged_kernels_alone(upscale: Path, tmp_path: Path) -> None:
    state = nets.merged_span(nets.make_span_plus(4))
    file = tmp_path / "span-plus.pth"
    save_zip({"params_ema": state}, file)
    verify(upscale, file, state, lambda weights, x: nets.run_span_plus(weights, 4, x))


@pytest.mark.parametrize("ups", [0, 1, 2])
@pytest.mark.parametrize("named", nets.EDSR)
def test_edsr(named: str, ups: int, upscale: Path, tmp_path: Path) -> None:
    names = nets.EDSR[named]
    state = nets.make_edsr(names, ups)
    file = tmp_path / "edsr.pt"
    save_legacy(state, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_edsr(weights, names, x))
    assert (report["scale"], report["architecture"].split()[0]) == (2**ups, "EDSR")


def test_edsr_of_the_large_size(upscale: Path, tmp_path: Path) -> None:
    names = nets.EDSR["BasicSR"]
    state = nets.make_edsr(names, 2, channels=256)
    file = tmp_path / "edsr-large.pth"
    save_zip({"params": state}, file)
    verify(upscale, file, state, lambda weights, x: nets.run_edsr(weights, names, x))


@pytest.mark.parametrize("ups", [1, 2])
def test_srresnet(ups: int, upscale: Path, tmp_path: Path) -> None:
    state = nets.make_srresnet(ups)
    file = tmp_path / "srresnet.pth"
    save_zip({"params": state}, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_srresnet(weights, ups, x))
    assert (report["scale"], report["architecture"]) == (2**ups, "SRResNet (MSRResNet)")


@pytest.mark.parametrize("ups", [0, 1, 2])
@pytest.mark.parametrize("depthwise", [False, True])
def test_dis(depthwise: bool, ups: int, upscale: Path, tmp_path: Path) -> None:
    state = nets.make_dis(ups, depthwise)
    file = tmp_path / "dis.pth"
    save_zip({"params": state}, file)
    report = verify(upscale, file, state, lambda weights, x: nets.run_dis(weights, ups, x))
    assert (report["scale"], report["architecture"]) == (2**ups, "DIS")


RESTORING = {
    "old names": (nets.old_names(2, 0), 3),
    "new names, of squares of 4": (nets.new_names(2), 48),
    "bsrgan names, of squares of 2": (nets.bsrgan_names(1), 12),
}


@pytest.mark.parametrize("case", RESTORING)
def test_esrgan_at_1x(case: str, upscale: Path, tmp_path: Path) -> None:
    names, read = RESTORING[case]
    state, forward = rrdb(names, 2, read)
    file = tmp_path / "esrgan.pth"
    save_zip({"params_ema": state}, file)
    report = verify(upscale, file, state, forward)
    assert report["scale"] == 1
    assert report["architecture"].startswith("ESRGAN")


@pytest.mark.parametrize("family", ["compact", "span"])
def test_the_others_at_1x(family: str, upscale: Path, tmp_path: Path) -> None:
    state = nets.make_compact(1) if family == "compact" else nets.make_span(1)
    run = nets.run_compact if family == "compact" else nets.run_span
    file = tmp_path / "model.pth"
    save_zip({"params": state}, file)
    assert verify(upscale, file, state, lambda weights, x: run(weights, 1, x))["scale"] == 1


def of_parameters(state: dict) -> OrderedDict:
    return OrderedDict((f"module.{name}", torch.nn.Parameter(tensor)) for name, tensor in state.items())


CONTAINERS = {
    "zip": ("PyTorch zip", save_zip),
    "zip, protocol 4": ("PyTorch zip", lambda state, path: torch.save(state, path, pickle_protocol=4)),
    "zip of parameters": ("PyTorch zip", lambda state, path: save_zip(of_parameters(state), path)),
    "legacy": ("PyTorch legacy pickle", save_legacy),
    "legacy of parameters": ("PyTorch legacy pickle", lambda state, path: save_legacy(of_parameters(state), path)),
    "safetensors": ("safetensors", save_safetensors),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container(container: str, upscale: Path, tmp_path: Path) -> None:
    report, save = CONTAINERS[container]
    state, forward = rrdb(nets.new_names(2), 1, 3)
    file = tmp_path / "model.pth"
    save(OrderedDict(state), file)
    assert verify(upscale, file, state, forward)["container"] == report


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_and_layouts(kind: torch.dtype, upscale: Path, tmp_path: Path) -> None:
    state, forward = rrdb(nets.old_names(1, 2), 1, 3)
    wide = (4, torch.channels_last)
    state = {
        name: t.to(kind, memory_format=wide[1] if t.dim() == wide[0] else torch.preserve_format)
        for name, t in state.items()
    }
    file = tmp_path / "model.pth"
    save_legacy(state, file)
    verify(upscale, file, state, forward)


def refusal(upscale: Path, file: Path) -> str:
    done = subprocess.run([upscale, "model", "inspect", file], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    return done.stderr


def test_a_damaged_zip_is_refused_and_one_without_sums_is_read(upscale: Path, tmp_path: Path) -> None:
    state, forward = rrdb(nets.new_names(2), 1, 3)
    file = tmp_path / "model.pth"
    save_zip(state, file)
    whole = bytearray(file.read_bytes())
    whole[whole.index(state["conv_body.weight"].numpy().tobytes()) + 40] ^= 1
    file.write_bytes(whole)
    assert "is damaged: its CRC-32 is" in refusal(upscale, file)
    torch.serialization.set_crc32_options(False)
    try:
        save_zip(state, file)
    finally:
        torch.serialization.set_crc32_options(True)
    verify(upscale, file, state, forward)


def test_what_is_no_dictionary_of_weights_is_refused(upscale: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.pth"
    torch.save(torch.nn.Conv2d(3, 3, 3), file)
    assert "torch.nn.modules.conv.Conv2d" in refusal(upscale, file)
    torch.save({"layers.0.residual_group.blocks.0.norm1.weight": torch.ones(3)}, file)
    assert "SwinIR, which is not supported; supported are ESRGAN" in refusal(upscale, file)
    state = nets.make_compact(2)
    state["body.0.weight"][0, 0, 0, 0] = torch.nan
    torch.save(state, file)
    assert "body.0.weight has a value that is not within 1e6" in refusal(upscale, file)
