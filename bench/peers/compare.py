"""Ours and the peers, alternately, on the same network and weights; prints ratios. Started by run.sh."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import network

HERE = Path(__file__).resolve().parent
FP32 = ["openvino", "onnxruntime", "ncnn"]
OTHERS = ["ncnn_bf16", "openvino_int8"]
PRECISIONS = ["exact", "fast"]
# Wall and processor: on a machine that does other things too, the second says more of one thread.
CLOCKS = ["seconds", "processor_seconds"]


def prepare(folder: Path, size: int, in_bytes: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "compact.safetensors").exists():
        network.write_ours(folder / "compact.safetensors", in_bytes)
        network.write_ncnn(folder / "compact.param", folder / "compact.bin", in_bytes)
    if not (folder / f"compact-{size}.onnx").exists():
        network.write_onnx(folder / f"compact-{size}.onnx", size, in_bytes)
    if not (folder / f"compact-{size}-int8.xml").exists():
        command = [sys.executable, HERE / "quantize.py", folder, str(size)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ours(arguments, size: int, threads: int, kernels: str, precision: str) -> dict:
    model = arguments.folder / "compact.safetensors"
    command = [*shlex.split(arguments.ours), "bench", "--network", model, "--size", f"{size}x{size}"]
    command += ["--threads", str(threads), "--precision", precision, "--runs", str(arguments.runs), "--json"]
    environment = dict(os.environ, **({"UPSCALE_CPU": kernels} if kernels else {}))
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


def peer(engine: str, folder: Path, size: int, threads: int, runs: int) -> dict:
    command = [sys.executable, HERE / "peer.py", engine, folder, str(size), str(threads), str(runs)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(lines.splitlines()[-1])


def measure(arguments, size: int, threads: int) -> None:
    """`rounds` times: ours, exact and fast, before and after every peer. Ratios are taken within a round."""
    engines = arguments.engines or FP32 + OTHERS + ["openvino_avx2"]
    found: dict[str, list[dict]] = {}
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for engine in engines:
            kernels = "avx2" if engine.endswith("_avx2") else ""
            run = partial(ours, arguments, size, threads, kernels)
            around = {precision: [run(precision)] for precision in PRECISIONS}
            theirs = peer(engine, arguments.folder, size, threads, arguments.runs)
            found.setdefault(engine, []).append(theirs)
            for precision, measured in around.items():
                measured.append(run(precision))
                found.setdefault(f"ours {precision} {kernels}", []).extend(measured)
                for clock in CLOCKS:
                    mean = sum(one[clock] for one in measured) / 2
                    ratios.setdefault((engine, precision, clock), []).append(theirs[clock] / mean)
    report(size, threads, found, ratios)


def spread(values: list[float], digits: int) -> str:
    middle = f"{statistics.median(values):.{digits}f}"
    return f"{middle} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def report(size: int, threads: int, found: dict, ratios: dict) -> None:
    work = 2 * network.MACS_PER_PIXEL * size * size / 1e9
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\n### {size} x {size}, {threads} thread(s), {work:.1f} G direct operations, load {load}\n")
    columns = [f"ours {precision} is faster, {clock}" for precision in PRECISIONS for clock in CLOCKS]
    print("| engine | seconds: median (min-max) | processor seconds | peak MB |", " | ".join(columns), "|")
    print("|---" * (4 + len(columns)) + "|")
    for name, runs in sorted(found.items(), key=lambda item: statistics.median(r["seconds"] for r in item[1])):
        cells = [name, *(spread([run[clock] for run in runs], 3) for clock in CLOCKS)]
        cells.append(f"{runs[-1]['peak_memory_bytes'] / 1e6:.0f}")
        keys = [(name, precision, clock) for precision in PRECISIONS for clock in CLOCKS]
        cells += [spread(ratios[key], 2) if key in ratios else "" for key in keys]
        print("|", " | ".join(cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", required=True, help="the command, e.g. target/release/upscale")
    parser.add_argument("--folder", type=Path, required=True, help="where models and results are kept")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--engines", nargs="*", help=f"of {FP32 + OTHERS + ['openvino_avx2']}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each in one round")
    parser.add_argument("--bytes", action="store_true", help="weights of one byte, as ours are that ship, for all")
    arguments = parser.parse_args()
    arguments.folder /= "bytes" if arguments.bytes else "."
    for size in arguments.sizes:
        prepare(arguments.folder, size, arguments.bytes)
        for threads in arguments.threads:
            measure(arguments, size, threads)


if __name__ == "__main__":
    main()
