/** What is tried again and what is not, against scripted answers. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { inspect } from "node:util";

import {
  APIConnectionError,
  APIStatusError,
  AuthenticationError,
  BadRequestError,
  ChecksumError,
  ConflictError,
  GoneError,
  InsufficientCreditsError,
  InternalServerError,
  mintKey,
  type Options,
  PermissionDeniedError,
  PollTimeoutError,
  RateLimitError,
  type SucceededTask,
  TaskFailedError,
  UnexpectedResponseError,
  Upscale,
  UpscaleError,
} from "../src/index.js";
import { PAUSES } from "../src/tries.js";

const PNG = "picture";
const SHA256 = createHash("sha256").update(PNG).digest("hex");
const ORDER = { imageUrl: "https://images.example.com/a.png", scale: 4 } as const;
const HELD = { "Preference-Applied": "wait=20" };

beforeEach(() => {
  // Scripted answers come at once, those of a service that holds requests as well.
  Object.assign(PAUSES, { heldAtLeast: 0, firstPoll: 0.01, slowestPoll: 0.02 });
});

type Seen = { url: string; headers: Headers };
type Answer = Response | Error | "never";

function scripted(answers: Answer[], options: Options = {}): [Upscale, Seen[]] {
  const seen: Seen[] = [];
  const answer = async (url: string | URL | Request, options?: RequestInit): Promise<Response> => {
    seen.push({ url: String(url), headers: new Headers(options?.headers) });
    const next = answers.shift() ?? new Response("the script is over", { status: 418 });
    if (next === "never") {
      return new Promise((_, reject) => options?.signal?.addEventListener("abort", () => reject(options.signal?.reason)));
    }
    if (next instanceof Error) throw next;
    return next;
  };
  const service = { baseUrl: "https://api.example.com/", apiKey: "usk_live_x", timeout: 20, fetch: answer };
  return [new Upscale({ ...service, ...options }), seen];
}

function refusal(status: number, code: string, headers: Record<string, string> = {}): Response {
  const error = { type: "api_error", code, message: "m", request_id: "req_1" };
  return Response.json({ error }, { status, headers });
}

function processing(status: number, headers: Record<string, string> = {}): Response {
  const usage = { credits_reserved: 0.7, credits_charged: 0 };
  return Response.json({ id: "ups_1", status: "processing", urls: { get: "u" }, usage }, { status, headers });
}

function failed(): Response {
  const error = { code: "image_processing_failed", message: "No image. No credits were charged." };
  const usage = { credits_charged: 0, refund_status: "refunded" };
  return Response.json({ id: "ups_1", status: "failed", error, usage });
}

function succeeded(sha256 = SHA256, status = 200): Response {
  const result = { url: "https://files.example.com/1.png?signature=secret", format: "png" };
  const body = { id: "ups_1", status: "succeeded", result, usage: { credits_charged: 0.7 } };
  return Response.json(body, { status, headers: { "X-Result-SHA256": sha256 } });
}

const png = (bytes = PNG): Response => new Response(bytes);
const run = async ({ upscales }: Upscale): Promise<string> =>
  Buffer.from(await upscales.download(await upscales.run(ORDER))).toString();

async function retrieved({ upscales }: Upscale): Promise<SucceededTask> {
  const task = await upscales.retrieve("ups_1");
  assert.equal(task.status, "succeeded");
  return task as SucceededTask;
}

test("a lost create is sent again under the same key", async () => {
  const [client, seen] = scripted([
    refusal(503, "service_unavailable"),
    new TypeError("fetch failed"),
    processing(202, HELD),
    refusal(504, "upstream_timeout"),
    processing(200),
    succeeded(),
    png(),
  ]);
  assert.equal(await run(client), PNG);
  assert.equal(new Set(seen.slice(0, 3).map(({ headers }) => headers.get("Idempotency-Key"))).size, 1);
  assert.ok(seen.slice(0, 6).every(({ headers }) => headers.get("Authorization") === "Bearer usk_live_x"));
  assert.equal(seen[6]?.headers.has("Authorization"), false);
});

test("the service is asked to hold what waits and nothing else", async () => {
  const answers = [processing(202), processing(202, HELD), succeeded(), png(), succeeded()];
  const [{ upscales }, seen] = scripted(answers, { timeout: 9.5 });
  const task = await upscales.create(ORDER);
  assert.equal(task.idempotencyKey, seen[0]?.headers.get("Idempotency-Key"));
  await upscales.download(await upscales.run(ORDER));
  assert.equal((await upscales.wait(task)).idempotencyKey, task.idempotencyKey);
  const waits = seen.map(({ headers }) => headers.get("Prefer"));
  assert.deepEqual(waits, [null, "wait=9", "wait=9", null, "wait=9"]);
});

test("a service that holds nothing is asked after the contract's pause", async () => {
  Object.assign(PAUSES, { heldAtLeast: 5, firstPoll: 0.3 });
  const [{ upscales }, seen] = scripted([processing(202, HELD), succeeded()]);
  const began = performance.now();
  await upscales.run(ORDER);
  assert.ok(performance.now() - began >= 299);
  assert.equal(seen.length, 2);
});

test("a limit is waited for as long as the service says", async () => {
  const [client, seen] = scripted([refusal(429, "rate_limit_exceeded", { "Retry-After": "1" }), processing(202)]);
  const began = performance.now();
  await client.upscales.create(ORDER);
  assert.ok(performance.now() - began >= 999);
  assert.equal(seen.length, 2);
});

test("a limit longer than the timeout is said at once", async () => {
  const [client, seen] = scripted([refusal(429, "daily_limit_exceeded", { "Retry-After": "43200" })]);
  await assert.rejects(run(client), (error) => error instanceof RateLimitError && error.retryAfter === 43200);
  assert.equal(seen.length, 1);
});

test("retries end with their number", async () => {
  const answers = Array.from({ length: 4 }, () => refusal(503, "service_unavailable"));
  const [client, seen] = scripted(answers, { maxRetries: 1 });
  await assert.rejects(run(client), InternalServerError);
  assert.equal(seen.length, 2);
});

for (const [status, kind] of [
  [400, BadRequestError],
  [401, AuthenticationError],
  [402, InsufficientCreditsError],
  [403, PermissionDeniedError],
  [409, ConflictError],
] as const) {
  test(`${status} is not tried again, and the minted key is on the error`, async () => {
    const [client, seen] = scripted([refusal(status, "some_code")]);
    await assert.rejects(run(client), (error) => {
      assert.ok(error instanceof kind && error instanceof APIStatusError);
      assert.equal(error.status, status);
      assert.equal(error.idempotencyKey, seen[0]?.headers.get("Idempotency-Key"));
      return true;
    });
    assert.equal(seen.length, 1);
  });
}

test("a timeout keeps the id and the key", async () => {
  const [client, seen] = scripted([processing(202)], { timeout: 0.005 });
  await assert.rejects(run(client), (error) => {
    assert.ok(error instanceof PollTimeoutError);
    assert.equal(error.taskId, "ups_1");
    assert.equal(error.idempotencyKey, seen[0]?.headers.get("Idempotency-Key"));
    return true;
  });
});

test("a failed task is an error where it was waited for and a value where it was read", async () => {
  const [client] = scripted([processing(202, HELD), failed(), failed()]);
  await assert.rejects(run(client), (error) => error instanceof TaskFailedError && error.taskId === "ups_1");
  const task = await client.upscales.retrieve("ups_1");
  assert.equal(task.status === "failed" && task.failure.refundStatus, "refunded");
});

test("an unknown status and a strange answer are errors", async () => {
  const paused = Response.json({ id: "ups_1", status: "paused", usage: { credits_charged: 0 } });
  for (const strange of [paused, new Response("<html>"), Response.json([]), new Response("x".repeat(70_000))]) {
    const [client] = scripted([processing(202), strange]);
    await assert.rejects(run(client), UnexpectedResponseError);
  }
});

test("a damaged or stale download is fetched again with a new link", async () => {
  const stale = refusal(403, "result_url_expired");
  const [client, seen] = scripted([succeeded(), png("pict"), succeeded(), stale, succeeded(), png()]);
  const task = await retrieved(client);
  assert.equal(Buffer.from(await client.upscales.download(task)).toString(), PNG);
  assert.equal(seen.length, 6);
});

test("a result that stays damaged, is gone or cannot be checked is an error", async () => {
  const damaged = Array.from({ length: 4 }, () => [png("pict"), succeeded()]).flat();
  for (const [answers, kind] of [
    [[succeeded(), ...damaged], ChecksumError],
    [[succeeded(), refusal(410, "result_expired")], GoneError],
    [[succeeded("unknown"), png()], UnexpectedResponseError],
  ] as const) {
    const [client] = scripted([...answers]);
    await assert.rejects(client.upscales.download(await retrieved(client)), kind);
  }
});

test("a result is written to a file whole and its progress is told", async () => {
  const [client] = scripted([succeeded(), png()]);
  const folder = mkdtempSync(join(tmpdir(), "upscale-client-"));
  const come: number[] = [];
  const path = join(folder, "cat.png");
  await client.upscales.download(await retrieved(client), path, { onProgress: (bytes) => come.push(bytes) });
  assert.equal(readFileSync(path, "utf8"), PNG);
  assert.deepEqual(readdirSync(folder), ["cat.png"]);
  assert.equal(come.at(-1), PNG.length);
  rmSync(folder, { recursive: true });
});

test("progress tells of each reading", async () => {
  const [{ upscales }] = scripted([processing(202, HELD), processing(200, HELD), succeeded()]);
  const seen: string[] = [];
  await upscales.run(ORDER, { onProgress: ({ status }) => seen.push(status) });
  assert.deepEqual(seen, ["processing", "processing", "succeeded"]);
});

test("a signal ends a call, held or between two tries, with its own reason", async () => {
  const reason = new Error("enough");
  for (const answers of [["never"], [refusal(503, "x", { "Retry-After": "9" })]] as Answer[][]) {
    const [{ upscales }, seen] = scripted(answers);
    const controller = new AbortController();
    const call = upscales.run(ORDER, { signal: controller.signal });
    while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    controller.abort(reason);
    await assert.rejects(call, reason);
  }
});

test("many come as they end, each with its order, and failures among them", async () => {
  const answers = [succeeded(SHA256, 202), refusal(400, "invalid_image_url"), succeeded(SHA256, 202)];
  const [{ upscales }] = scripted(answers);
  const orders = [ORDER, ORDER, { ...ORDER, scale: 2 } as const];
  const outcomes: unknown[] = [];
  for await (const [, outcome] of upscales.runMany(orders, { concurrency: 2 })) outcomes.push(outcome);
  assert.equal(outcomes.length, 3);
  assert.equal(outcomes.filter((outcome) => outcome instanceof BadRequestError).length, 1);
  assert.equal(outcomes.filter((outcome) => outcome instanceof UpscaleError).length, 1);
});

test("no secret is told by an error or a print, and the cause is kept", async () => {
  const cause = new TypeError("fetch failed");
  const [client] = scripted(Array.from({ length: 20 }, () => cause), { timeout: 0.2 });
  await assert.rejects(run(client), (error) => error instanceof APIConnectionError && error.cause === cause);
  const [other] = scripted([succeeded()]);
  assert.ok(!inspect(await retrieved(other)).includes("secret"));
  assert.ok(!inspect(other, { depth: 9, showHidden: true }).includes("usk_live"));
});

test("what can never work is refused before it is sent", async () => {
  delete process.env["UPSCALE_API"];
  delete process.env["UPSCALE_API_KEY"];
  for (const baseUrl of ["", "api.example.com", "ftp://api.example.com"]) {
    assert.throws(() => new Upscale({ baseUrl, apiKey: "k" }), TypeError);
  }
  assert.throws(() => new Upscale({ baseUrl: "https://api.example.com", apiKey: "bad\nkey" }), TypeError);
  assert.throws(() => new Upscale({ baseUrl: "https://api.example.com" }), /UPSCALE_API_KEY/);
  assert.throws(() => new Upscale({ apiKey: "k" }), /set UPSCALE_API/);
  const [client, seen] = scripted([]);
  await assert.rejects(client.upscales.create({ ...ORDER, idempotencyKey: "short" }), TypeError);
  assert.equal(seen.length, 0);
  assert.notEqual(mintKey(), mintKey());
});

test("address and key come from the environment", async () => {
  process.env["UPSCALE_API"] = "https://other.example.com/";
  process.env["UPSCALE_API_KEY"] = "usk_live_y";
  const seen: string[] = [];
  const answer = async (url: string | URL | Request, options?: RequestInit): Promise<Response> => {
    seen.push(String(url), new Headers(options?.headers).get("Authorization") ?? "");
    return succeeded();
  };
  await new Upscale({ fetch: answer }).upscales.retrieve("ups_1");
  assert.deepEqual(seen, ["https://other.example.com/api/v1/upscales/ups_1", "Bearer usk_live_y"]);
});
