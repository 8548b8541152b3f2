# What the API reference shows beside GET /api/v1/upscales/{id}: its test holds the two together.
from upscale_api import Upscale

with Upscale() as client:  # UPSCALE_API and UPSCALE_API_KEY
    task = client.upscales.wait("ups_3k9v1c7m5x8q2w4e6r0t1y3n5p")
    client.upscales.download(task, "photo-2x.png")
