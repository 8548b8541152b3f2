"""Ours and realesrgan-ncnn-vulkan on one GPU: whole commands, alternately, on one picture with one model of ncnn's.

  bench/peers/gpu.py --ours target/release/upscale --peer realesrgan-ncnn-vulkan \\
    --models models --name realesrgan-x4plus --picture photo.png

Both start anew each time, open the GPU, read the picture and write a PNG. Prints seconds and the ratio of each round;
the results are left beside each other, to be looked at.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(command: list[str]) -> float:
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return took


def commands(arguments, folder: Path) -> dict[str, tuple[list[str], Path]]:
    picture, model = str(arguments.picture), arguments.models / f"{arguments.name}.param"
    ours, theirs = folder / "ours.png", folder / "theirs.png"
    gpu = str(arguments.gpu)
    return {
        "ours": (
            [
                arguments.ours,
                "file",
                picture,
                str(ours),
                "--overwrite",
                "--allow-non-commercial",
                "--model",
                str(model),
                "--device",
                f"gpu:{gpu}",
            ],
            ours,
        ),
        "theirs": (
            [
                arguments.peer,
                "-i",
                picture,
                "-o",
                str(theirs),
                "-m",
                str(arguments.models),
                "-n",
                arguments.name,
                "-s",
                str(arguments.scale),
                "-g",
                gpu,
                "-f",
                "png",
            ],
            theirs,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="the command, e.g. target/release/upscale")
    parser.add_argument("--peer", required=True, help="realesrgan-ncnn-vulkan, where it lies")
    parser.add_argument("--models", type=Path, required=True, help="folder of NAME.param and NAME.bin")
    parser.add_argument("--name", required=True, help="the model's name, without .param")
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--scale", type=int, default=4, help="what the model does")
    parser.add_argument("--gpu", type=int, default=0, help="its number, for both: they may count differently")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds after one that is not counted")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="upscale-peers-"))
    found: dict[str, list[float]] = {"ours": [], "theirs": []}
    for number in range(arguments.rounds + 1):
        took = {}
        for name, (command, result) in commands(arguments, folder).items():
            took[name] = seconds(command)
            if not result.exists():
                sys.exit(f"{command[0]} wrote no {result}")
        if number > 0:
            for name, one in took.items():
                found[name].append(one)
    for name, all_seconds in found.items():
        spread = f"{min(all_seconds):.3f} to {max(all_seconds):.3f}"
        print(f"{name:<7} {statistics.median(all_seconds):.3f} s (median; {spread})")
    ratios = [theirs / ours for ours, theirs in zip(found["ours"], found["theirs"], strict=True)]
    print(f"ours is {statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"results: {folder}")


if __name__ == "__main__":
    main()
