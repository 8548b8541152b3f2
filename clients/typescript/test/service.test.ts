/** The client against the real service: `upscale demo --hold`, with an image host of its own, on loopback. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { crc32, deflateSync } from "node:zlib";

import { AuthenticationError, ConflictError, mintKey, NotFoundError, TaskFailedError, Upscale } from "../src/index.js";

const BINARY = process.env["UPSCALE_BINARY"] ?? join(import.meta.dirname, "../../../../target/debug/upscale");

let service: ChildProcess;
let folder: string;
let client: Upscale;
let api: string;
let image: string;

/** A small picture with a gradient. */
function gradient(width: number, height: number): Buffer {
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width * 3; x += 1) rows[y * (1 + width * 3) + 1 + x] = (x * 5 + y * 9) % 256;
  }
  const chunk = (kind: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const frame = Buffer.alloc(8 + body.length);
    frame.writeUInt32BE(data.length);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body), 4 + body.length);
    return frame;
  };
  const header = Buffer.from([0, 0, 0, width, 0, 0, 0, height, 8, 2, 0, 0, 0]);
  const magic = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const parts = [chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([magic, ...parts]);
}

function size(png: Uint8Array): [number, number] {
  const view = new DataView(png.buffer, png.byteOffset);
  return [view.getUint32(16), view.getUint32(20)];
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "upscale-client-"));
  const source = join(folder, "small.png");
  writeFileSync(source, gradient(24, 16));
  service = spawn(BINARY, ["demo", "--hold", source], { stdio: ["pipe", "pipe", "inherit"] });
  for await (const line of createInterface({ input: service.stdout! })) {
    const ready = JSON.parse(line) as { api: string; key: string; images: string[] };
    [api, image] = [ready.api, ready.images[0]!];
    client = new Upscale({ baseUrl: ready.api, apiKey: ready.key });
    return;
  }
  throw new Error("the service did not start");
});

after(async () => {
  const ended = new Promise((resolve) => service.once("exit", resolve));
  service.stdin!.end();
  assert.equal(await ended, 0);
  rmSync(folder, { recursive: true });
});

test("an image is ordered, waited for and downloaded", async () => {
  const task = await client.upscales.run({ imageUrl: image, scale: 4 });
  assert.equal(task.creditsCharged, 0.7);
  assert.deepEqual(size(await client.upscales.download(task)), [96, 64]);
});

test("the same key is the same task", async () => {
  const idempotencyKey = mintKey();
  const first = await client.upscales.create({ imageUrl: image, idempotencyKey });
  const again = await client.upscales.create({ imageUrl: image, idempotencyKey });
  assert.deepEqual([first.isReplay, again.isReplay, again.id], [false, true, first.id]);
  await assert.rejects(client.upscales.create({ imageUrl: image, scale: 4, idempotencyKey }), ConflictError);
  assert.equal((await client.upscales.wait(first)).id, first.id);
});

test("a failure says why and that nothing was charged", async () => {
  const imageUrl = image.replace("small", "missing");
  await assert.rejects(
    client.upscales.run({ imageUrl }),
    (error) => error instanceof TaskFailedError && error.failure.message.includes("No credits were charged"),
  );
});

test("what is wrong is told in the service's words", async () => {
  const unknown = client.upscales.retrieve("ups_unknown");
  await assert.rejects(unknown, (error) => error instanceof NotFoundError && error.code === "task_not_found");
  const unauthorized = new Upscale({ baseUrl: api, apiKey: "usk_live_wrong" });
  await assert.rejects(unauthorized.upscales.create({ imageUrl: image }), AuthenticationError);
});
