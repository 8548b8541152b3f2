"""Ours and the peers, alternately, on the same network and weights; prints ratios. Started by run.sh."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import network

HERE = Path(__file__).resolve().parent
FP32 = ["openvino", "onnxruntime", "ncnn"]
OTHERS = ["ncnn_bf16", "openvino_int8"]


def prepare(folder: Path, size: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "compact.safetensors").exists():
        network.write_ours(folder / "compact.safetensors")
        network.write_ncnn(folder / "compact.param", folder / "compact.bin")
    if not (folder / f"compact-{size}.onnx").exists():
        network.write_onnx(folder / f"compact-{size}.onnx", size)
    if not (folder / f"compact-{size}-int8.xml").exists():
        command = [sys.executable, HERE / "quantize.py", folder, str(size)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ours(binary: str, folder: Path, size: int, threads: int, kernels: str) -> dict:
    model = folder / "compact.safetensors"
    command = [*shlex.split(binary), "bench", "--network", model, "--size", f"{size}x{size}"]
    command += ["--threads", str(threads), "--json"]
    environment = dict(os.environ, **({"UPSCALE_CPU": kernels} if kernels else {}))
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


def peer(engine: str, folder: Path, size: int, threads: int, runs: int) -> dict:
    command = [sys.executable, HERE / "peer.py", engine, folder, str(size), str(threads), str(runs)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(lines.splitlines()[-1])


def measure(arguments, folder: Path, size: int, threads: int) -> None:
    """`rounds` times: ours between every two peers. Ratios are taken within a round."""
    engines = arguments.engines or FP32 + OTHERS + ["openvino_avx2"]
    seconds: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {engine: [] for engine in engines}
    memory: dict[str, int] = {}
    for _ in range(arguments.rounds):
        for engine in engines:
            kernels = "avx2" if engine.endswith("_avx2") else ""
            name = "ours " + kernels
            before = ours(arguments.ours, folder, size, threads, kernels)
            theirs = peer(engine, folder, size, threads, arguments.runs)
            after = ours(arguments.ours, folder, size, threads, kernels)
            mean = (before["seconds"] + after["seconds"]) / 2
            ratios[engine].append(theirs["seconds"] / mean)
            seconds.setdefault(engine, []).append(theirs["seconds"])
            seconds.setdefault(name, []).extend([before["seconds"], after["seconds"]])
            memory[engine], memory[name] = theirs["peak_memory_bytes"], after["peak_memory_bytes"]
    report(size, threads, seconds, ratios, memory)


def report(size: int, threads: int, seconds: dict, ratios: dict, memory: dict) -> None:
    work = 2 * network.MACS_PER_PIXEL * size * size / 1e9
    print(f"\n### {size} x {size}, {threads} thread(s), {work:.1f} G direct operations\n")
    print("| engine | seconds: median (min-max) | G/s | peak MB | ours is faster: median (min-max) |")
    print("|---|---|---|---|---|")
    for name, values in sorted(seconds.items(), key=lambda item: statistics.median(item[1])):
        middle = statistics.median(values)
        line = f"| {name} | {middle:.4f} ({min(values):.4f}-{max(values):.4f}) | {work / middle:.0f} "
        line += f"| {memory[name] / 1e6:.0f} |"
        if name in ratios:
            found = ratios[name]
            line += f" **{statistics.median(found):.2f}** ({min(found):.2f}-{max(found):.2f}) |"
        else:
            line += " |"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", required=True, help="the command, e.g. target/release/upscale")
    parser.add_argument("--folder", type=Path, required=True, help="where models and results are kept")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--engines", nargs="*", help=f"of {FP32 + OTHERS + ['openvino_avx2']}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5, help="runs of a peer in one round")
    arguments = parser.parse_args()
    for size in arguments.sizes:
        prepare(arguments.folder, size)
        for threads in arguments.threads:
            measure(arguments, arguments.folder, size, threads)


if __name__ == "__main__":
    main()
