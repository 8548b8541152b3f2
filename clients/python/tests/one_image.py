# What the console shows beside an order: a test of the console holds the two together.
from upscale_api import Upscale

with Upscale("https://api.example.com") as client:
    task = client.upscales.run("https://images.example.com/photo.jpg", scale=4, face_enhance=True)
    client.upscales.download(task, "result.png")
