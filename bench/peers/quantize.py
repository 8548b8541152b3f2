"""OpenVINO's int8 form of the network, calibrated by its own tool: quantize.py FOLDER SIZE."""

import sys
from pathlib import Path

import nncf
import numpy as np
import openvino

import network

folder, size = Path(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(0)
pictures = [
    np.clip(network.picture(size) + 0.05 * random.standard_normal((1, 3, size, size)), 0, 1).astype("f4")
    for _ in range(4)
]
model = openvino.Core().read_model(folder / f"compact-{size}.onnx")
quantized = nncf.quantize(model, nncf.Dataset(pictures), subset_size=4, preset=nncf.QuantizationPreset.MIXED)
openvino.save_model(quantized, folder / f"compact-{size}-int8.xml", compress_to_fp16=False)
