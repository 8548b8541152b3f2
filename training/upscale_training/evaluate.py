"""The benchmark table: `python -m upscale_training.evaluate FOLDER... --weights FILE...`.

Protocol: pictures cut to a multiple of the scale, shrunk by MATLAB's antialiased bicubic, rounded to 8 bits;
the enlargement rounded to 8 bits; PSNR and SSIM on Y of BT.601, a border of `scale` pixels shaved.
`upscale-lab eval` of the Rust side computes the same to 0.01 dB.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from .condition import CLEAN, SILENT, UNKNOWN, told
from .data import as_batch
from .estimate import SIDE_MIN, Estimator, load_estimator
from .network import Network, in_bytes
from .resize import resize_8bit, to_8bit
from .train import averaged
from .weights import load_weights

ENDINGS = {".png", ".bmp", ".jpg", ".jpeg", ".webp"}
Enlarger = Callable[[NDArray[np.uint8], int], NDArray[np.uint8]]


@dataclass(frozen=True)
class Score:
    """Means over a folder: decibels and 0..1."""

    psnr: float
    ssim: float
    pictures: int


def luma(picture: NDArray[np.uint8]) -> NDArray:
    """Y of BT.601 in 16..235, not rounded."""
    return 16.0 + picture.astype(np.float64) @ np.array([65.481, 128.553, 24.966]) / 255.0


def psnr(one: NDArray, other: NDArray) -> float:
    """Decibels against a peak of 255; infinite where the two are equal."""
    error = float(np.mean((one - other) ** 2))
    return float("inf") if error == 0.0 else 10.0 * np.log10(255.0**2 / error)


def ssim(one: NDArray, other: NDArray) -> float:
    """Wang et al. 2004: 11x11 Gaussian of sigma 1.5, whole windows only, K1 = 0.01, K2 = 0.03."""
    c1, c2 = (0.01 * 255.0) ** 2, (0.03 * 255.0) ** 2
    m1, m2 = blur(one), blur(other)
    v1, v2 = blur(one * one) - m1 * m1, blur(other * other) - m2 * m2
    shared = blur(one * other) - m1 * m2
    likeness = (2.0 * m1 * m2 + c1) * (2.0 * shared + c2)
    return float(np.mean(likeness / ((m1 * m1 + m2 * m2 + c1) * (v1 + v2 + c2))))


def blur(plane: NDArray) -> NDArray:
    taps = np.exp(-(np.arange(-5, 6) ** 2) / (2.0 * 1.5**2))
    taps /= taps.sum()
    windows = np.lib.stride_tricks.sliding_window_view
    return windows(windows(plane, 11, axis=0) @ taps, 11, axis=1) @ taps


def compare(clean: NDArray[np.uint8], enlarged: NDArray[np.uint8], scale: int) -> tuple[float, float]:
    """PSNR-Y and SSIM-Y without the border of `scale` pixels."""
    one, other = (luma(picture)[scale:-scale, scale:-scale] for picture in (clean, enlarged))
    return psnr(one, other), ssim(one, other)


def interpolate(kernel: str) -> Enlarger:
    return lambda small, scale: resize_8bit(small, small.shape[0] * scale, small.shape[1] * scale, kernel)


@lru_cache(maxsize=1)
def shipped_estimator() -> Estimator:
    return load_estimator(Path(__file__).parents[2] / "crates/upscale_image/weights/estimate.safetensors")


def estimated(small: NDArray[np.uint8], estimator: Estimator) -> tuple[float, float]:
    """The condition's two inputs for what the estimator makes of a picture; unknown where it is too small."""
    if min(small.shape[:2]) < SIDE_MIN:
        return SILENT, SILENT
    noise, softness = told(estimator, as_batch([small]))[0].tolist()
    return noise, softness


def network_enlarger(network: Network, condition: tuple[float, ...] = CLEAN) -> Enlarger:
    """`condition` is the condition input of every picture.

    To networks of six inputs the estimator adds noise and softness where `condition` has four numbers, as in the
    service; where those say that nothing is known, it is silent too. The network runs as it ships, in bytes.
    """
    network = in_bytes(network)
    inputs = network.architecture.inputs

    def enlarge(small: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
        if scale != network.architecture.scale:
            raise ValueError(f"a network for {network.architecture.scale}x was asked for {scale}x")
        numbers = condition[:inputs]
        if network.architecture.conditioned and len(condition) < inputs:
            numbers = (
                *condition,
                *((SILENT, SILENT) if condition == UNKNOWN else estimated(small, shipped_estimator())),
            )
        return to_8bit(network.upscale(as_batch([small]), torch.tensor(numbers))[0].permute(1, 2, 0).numpy())

    return enlarge


def read_clean(path: Path, scale: int) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        picture = np.asarray(image.convert("RGB"))
    return picture[: picture.shape[0] // scale * scale, : picture.shape[1] // scale * scale]


def evaluate(folder: Path, scale: int, enlargers: dict[str, Enlarger]) -> dict[str, Score]:
    """Mean scores of every enlarger over the pictures of `folder`."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    if not paths:
        raise ValueError(f"{folder} holds no picture ({', '.join(sorted(ENDINGS))})")
    marks: dict[str, list[tuple[float, float]]] = {name: [] for name in enlargers}
    for path in paths:
        clean = read_clean(path, scale)
        small = resize_8bit(clean, clean.shape[0] // scale, clean.shape[1] // scale)
        for name, enlarge in enlargers.items():
            marks[name].append(compare(clean, enlarge(small, scale), scale))
    means = {name: np.mean(found, axis=0) for name, found in marks.items()}
    return {name: Score(float(mean[0]), float(mean[1]), len(paths)) for name, mean in means.items()}


def read_network(path: Path) -> tuple[Network, dict[str, str]]:
    """A weight file, or the average of a run that may still be under way: to be measured, not shipped."""
    if path.suffix != ".pt":
        return load_weights(path)
    state = torch.load(path, map_location="cpu", weights_only=True)
    return averaged(state), {"name": f"{state['recipe']['name']}, {state['step']} steps"}


def table(folders: list[Path], weights: list[Path]) -> str:
    """One Markdown row for each folder, scale and method."""
    rows = ["| set | scale | method | PSNR-Y | SSIM-Y |", "|---|---|---|---|---|"]
    networks = [read_network(path) for path in weights]
    for folder in folders:
        for scale in sorted({network.architecture.scale for network, _ in networks} or {2, 4}):
            enlargers = {name: interpolate(name) for name in ("bicubic", "lanczos3")}
            for network, metadata in networks:
                if network.architecture.scale == scale:
                    enlargers[metadata["name"]] = network_enlarger(network)
            for name, score in evaluate(folder, scale, enlargers).items():
                rows.append(f"| {folder.name} | {scale} | {name} | {score.psnr:.3f} | {score.ssim:.4f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--weights", type=Path, nargs="*", default=[], help="weight files, or checkpoints (.pt)")
    arguments = parser.parse_args()
    print(table(arguments.folders, arguments.weights))


if __name__ == "__main__":
    main()
