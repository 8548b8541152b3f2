# What the console shows beside an order: a test of the console holds the two together.
import os
from pathlib import Path

from upscale_api import Upscale

with Upscale("https://api.example.com", api_key=os.environ["UPSCALE_API_KEY"]) as upscale:
    task = upscale.upscale("https://images.example.com/photo.jpg", scale=4, face_enhance=True)
    Path("result.png").write_bytes(task.download())
