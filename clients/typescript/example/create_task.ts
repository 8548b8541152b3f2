// What the API reference shows beside POST /api/v1/upscales: its test holds the two together.
import { Upscale } from "upscale-api";

const client = new Upscale(); // UPSCALE_API and UPSCALE_API_KEY
const task = await client.upscales.create({
  imageUrl: "https://images.example.com/photo.jpg",
  scale: 2,
  idempotencyKey: "picture-0001",
});
console.log(task.id, task.status);
