// What the console shows beside an order: a test of the console holds the two together.
import { writeFile } from "node:fs/promises";
import { Upscale } from "upscale-api";

const upscale = new Upscale({
  baseUrl: "https://api.example.com",
  apiKey: process.env["UPSCALE_API_KEY"]!,
});
const task = await upscale.upscale({
  imageUrl: "https://images.example.com/photo.jpg",
  scale: 4,
  faceEnhance: true,
});
await writeFile("result.png", await task.download());
