"""Times one peer once: peer.py ENGINE FOLDER SIZE THREADS RUNS prints one JSON line.

Its numbers are seconds, processor seconds and peak memory.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

engine, folder, size, threads, runs = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])
os.environ["OMP_NUM_THREADS"] = str(threads)
if engine.endswith("_avx2"):
    # oneDNN inside OpenVINO obeys this; the other peers have no such switch.
    os.environ["ONEDNN_MAX_CPU_ISA"] = os.environ["DNNL_MAX_CPU_ISA"] = "AVX2"

import numpy as np  # noqa: E402  (the variables above must be set first)

import network  # noqa: E402


def openvino(model: Path):
    import openvino

    core = openvino.Core()
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    options["INFERENCE_PRECISION_HINT"] = "f32"
    request = core.compile_model(core.read_model(model), "CPU", options).create_infer_request()

    def run(x: np.ndarray) -> np.ndarray:
        request.infer({0: x})
        return request.get_output_tensor(0).data

    return run


def onnxruntime(model: Path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    prepared = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda x: prepared.run(None, {"x": x})[0]


def ncnn(bfloat: bool):
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = bfloat
    net.load_param(str(folder / "compact.param"))
    net.load_model(str(folder / "compact.bin"))

    def run(x: np.ndarray) -> np.ndarray:
        extractor = net.create_extractor()
        extractor.input("x", ncnn.Mat(x[0]))
        return np.array(extractor.extract("y")[1])[None]

    return run


runners = {
    "openvino": lambda: openvino(folder / f"compact-{size}.onnx"),
    "openvino_avx2": lambda: openvino(folder / f"compact-{size}.onnx"),
    "openvino_int8": lambda: openvino(folder / f"compact-{size}-int8.xml"),
    "onnxruntime": lambda: onnxruntime(folder / f"compact-{size}.onnx"),
    "ncnn": lambda: ncnn(False),
    "ncnn_bf16": lambda: ncnn(True),
}
run, x = runners[engine](), network.picture(size)
assert run(x).shape == (1, 3, size * network.SCALE, size * network.SCALE)
seconds, before = [], time.process_time()
for _ in range(runs):
    started = time.perf_counter()
    run(x)
    seconds.append(time.perf_counter() - started)
processor = (time.process_time() - before) / runs
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
found = {"seconds": float(np.median(seconds)), "processor_seconds": processor}
print(json.dumps({**found, "peak_memory_bytes": peak}))
