# What the API reference shows beside POST /api/v1/upscales: its test holds the two together.
from upscale_api import Upscale

with Upscale() as client:  # UPSCALE_API and UPSCALE_API_KEY
    task = client.upscales.create("https://images.example.com/photo.jpg", scale=2, idempotency_key="picture-0001")
    print(task.id, task.status)
