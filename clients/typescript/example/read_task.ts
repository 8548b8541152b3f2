// What the API reference shows beside GET /api/v1/upscales/{id}: its test holds the two together.
import { Upscale } from "upscale-api";

const client = new Upscale(); // UPSCALE_API and UPSCALE_API_KEY
const task = await client.upscales.wait("ups_3k9v1c7m5x8q2w4e6r0t1y3n5p");
await client.upscales.download(task, "photo-2x.png");
