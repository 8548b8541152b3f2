// What the console shows beside an order: a test of the console holds the two together.
import { Upscale } from "upscale-api";

const client = new Upscale({ baseUrl: "https://api.example.com" });
const task = await client.upscales.run({
  imageUrl: "https://images.example.com/photo.jpg",
  scale: 4,
  faceEnhance: true,
});
await client.upscales.download(task, "result.png");
