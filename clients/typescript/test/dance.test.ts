/** What is tried again and what is not, against scripted answers. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { ApiError, Damaged, GaveUp, mintKey, Unexpected, Unreachable, Upscale, type Patience } from "../src/index.js";

const QUICK: Patience = { total: 20, request: 5, firstPoll: 0.01, slowestPoll: 0.02 };
const PNG = "picture";
const SHA256 = createHash("sha256").update(PNG).digest("hex");
const ORDER = { imageUrl: "https://images.example.com/a.png", scale: 4 } as const;

type Seen = { url: string; headers: Headers };
type Answer = Response | Error;

function scripted(answers: Answer[], patience: Partial<Patience> = QUICK): [Upscale, Seen[]] {
  const seen: Seen[] = [];
  const answer = async (url: string | URL | Request, options?: RequestInit): Promise<Response> => {
    seen.push({ url: String(url), headers: new Headers(options?.headers) });
    const next = answers.shift() ?? new Response("the script is over", { status: 418 });
    if (next instanceof Error) throw next;
    return next;
  };
  const client = new Upscale({ baseUrl: "https://api.example.com/", apiKey: "usk_live_x", patience, fetch: answer });
  return [client, seen];
}

function refusal(status: number, code: string, headers: Record<string, string> = {}): Response {
  const error = { type: "api_error", code, message: "m", request_id: "req_1" };
  return Response.json({ error }, { status, headers });
}

function processing(status: number): Response {
  const usage = { credits_reserved: 0.7, credits_charged: 0 };
  return Response.json({ id: "ups_1", status: "processing", urls: { get: "u" }, usage }, { status });
}

function succeeded(sha256 = SHA256): Response {
  const result = { url: "https://files.example.com/1.png", format: "png" };
  const body = { id: "ups_1", status: "succeeded", result, usage: { credits_charged: 0.7 } };
  return Response.json(body, { headers: { "X-Result-SHA256": sha256 } });
}

const png = (bytes = PNG): Response => new Response(bytes);
const download = async (client: Upscale): Promise<string> =>
  Buffer.from(await (await client.upscale(ORDER)).download()).toString();

test("a lost create is sent again under the same key", async () => {
  const [client, seen] = scripted([
    refusal(503, "service_unavailable"),
    new TypeError("fetch failed"),
    processing(202),
    refusal(504, "upstream_timeout"),
    processing(200),
    succeeded(),
    png(),
  ]);
  assert.equal(await download(client), PNG);
  assert.equal(new Set(seen.slice(0, 3).map(({ headers }) => headers.get("Idempotency-Key"))).size, 1);
  assert.ok(seen.slice(0, 6).every(({ headers }) => headers.get("Authorization") === "Bearer usk_live_x"));
  assert.equal(seen[6]?.headers.has("Authorization"), false);
});

test("a limit is waited for as long as the service says", async () => {
  const [client, seen] = scripted([refusal(429, "rate_limit_exceeded", { "Retry-After": "1" }), processing(202)]);
  const began = performance.now();
  await client.create(ORDER);
  assert.ok(performance.now() - began >= 1000);
  assert.equal(seen.length, 2);
});

test("a limit longer than patience is said at once", async () => {
  const [client, seen] = scripted([refusal(429, "daily_limit_exceeded", { "Retry-After": "43200" })]);
  await assert.rejects(download(client), /daily_limit_exceeded/);
  assert.equal(seen.length, 1);
});

for (const status of [400, 401, 402, 403, 409]) {
  test(`${status} is not tried again`, async () => {
    const [client, seen] = scripted([refusal(status, "some_code")]);
    await assert.rejects(download(client), (error) => error instanceof ApiError && error.status === status);
    assert.equal(seen.length, 1);
  });
}

test("giving up keeps the id", async () => {
  const [client] = scripted([processing(202)], { total: 0.05, firstPoll: 0.1, slowestPoll: 0.1 });
  await assert.rejects(download(client), (error) => error instanceof GaveUp && error.taskId === "ups_1");
});

test("an unknown status and a strange answer are errors", async () => {
  const paused = Response.json({ id: "ups_1", status: "paused", usage: { credits_charged: 0 } });
  for (const strange of [paused, new Response("<html>"), Response.json([]), new Response("x".repeat(70_000))]) {
    const [client] = scripted([processing(202), strange]);
    await assert.rejects(download(client), Unexpected);
  }
});

test("a damaged or stale download is fetched again with a new link", async () => {
  const stale = refusal(403, "result_url_expired");
  const [client, seen] = scripted([succeeded(), png("pict"), succeeded(), stale, succeeded(), png()]);
  const task = await client.read("ups_1");
  assert.equal(Buffer.from(await task.download()).toString(), PNG);
  assert.equal(seen.length, 6);
});

test("a result that stays damaged, is gone or cannot be checked is an error", async () => {
  const damaged = Array.from({ length: 4 }, () => [png("pict"), succeeded()]).flat();
  for (const [answers, kind] of [
    [[succeeded(), ...damaged], Damaged],
    [[succeeded(), refusal(410, "result_expired")], ApiError],
    [[succeeded("unknown"), png()], Unexpected],
  ] as const) {
    const [client] = scripted([...answers]);
    await assert.rejects((await client.read("ups_1")).download(), kind);
  }
});

test("no secret stands in an error", async () => {
  const lost = Array.from({ length: 20 }, () => new TypeError("https://x/?signature=secret"));
  const [client] = scripted(lost, { total: 0.2 });
  await assert.rejects(
    download(client),
    (error) => error instanceof Unreachable && !String(error.stack).includes("secret"),
  );
});

test("what can never work is refused before it is sent", async () => {
  for (const baseUrl of ["", "api.example.com", "ftp://api.example.com"]) {
    assert.throws(() => new Upscale({ baseUrl, apiKey: "k" }), TypeError);
  }
  assert.throws(() => new Upscale({ baseUrl: "https://api.example.com", apiKey: "bad\nkey" }), TypeError);
  const [client, seen] = scripted([]);
  await assert.rejects(client.create({ ...ORDER, idempotencyKey: "short" }), TypeError);
  assert.equal(seen.length, 0);
  assert.notEqual(mintKey(), mintKey());
});
