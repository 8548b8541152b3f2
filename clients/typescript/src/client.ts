/** The dance: create, wait, read, download. */

import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, Damaged, GaveUp, TaskFailed, Unexpected, Unreachable, UpscaleError } from "./errors.js";
import { readState, type State } from "./state.js";
import { DEFAULT_PATIENCE, type Patience, Tries } from "./tries.js";

/** The largest result: 12 MP of 16-bit RGBA that does not compress. */
const RESULT_BYTES_MAX = 128 << 20;
/** Longest answer to a create or a read; real ones have less than 3 KiB. */
const ANSWER_BYTES_MAX = 64 << 10;
const DOWNLOAD_TRIES = 4;

/** What is asked for. */
export interface Order {
  /** Public HTTPS address whose path ends in .jpg, .jpeg, .png or .webp. */
  readonly imageUrl: string;
  /** 2 by default. */
  readonly scale?: 2 | 4;
  /** Improve faces; false by default. */
  readonly faceEnhance?: boolean;
  /** Names the order: the same key is the same task and the same charge. Minted where absent. */
  readonly idempotencyKey?: string;
}

/** How to reach the service. */
export interface Options {
  /** Without `/api/v1`, such as `https://api.example.com`. */
  readonly baseUrl: string;
  /** A secret: use it on a server, never in a browser. */
  readonly apiKey: string;
  readonly patience?: Partial<Patience>;
  /** In place of the global one. */
  readonly fetch?: typeof fetch;
}

/** A new idempotency key of 128 random bits. */
export function mintKey(): string {
  return randomBytes(16).toString("hex");
}

/** The API of one service with one account's key. */
export class Upscale {
  readonly patience: Patience;
  private readonly base: string;
  private readonly apiKey: string;
  private readonly fetch: typeof fetch;

  constructor(options: Options) {
    const base = URL.canParse(options.baseUrl) ? new URL(options.baseUrl) : undefined;
    if (base === undefined || !["http:", "https:"].includes(base.protocol)) {
      throw new TypeError(`${JSON.stringify(options.baseUrl)} is no address such as https://api.example.com`);
    }
    if (!/^[!-~]+$/.test(options.apiKey)) throw new TypeError("an API key has visible ASCII characters only");
    this.base = base.href.replace(/\/+$/, "");
    this.apiKey = options.apiKey;
    this.patience = { ...DEFAULT_PATIENCE, ...options.patience };
    this.fetch = options.fetch ?? fetch;
  }

  /** Orders and waits for the end; throws as {@link create} and {@link Task.wait}. */
  async upscale(order: Order): Promise<Task> {
    return (await this.create(order)).wait();
  }

  /**
   * Creates the task, or finds the one that this key made before. What is temporary is tried again under the same key,
   * so nothing is paid twice. Throws {@link ApiError} with the service's words, or {@link Unreachable}.
   */
  async create(order: Order): Promise<Task> {
    const key = order.idempotencyKey ?? mintKey();
    if (!/^[!-~]{8,128}$/.test(key)) {
      throw new TypeError(`an idempotency key has 8 to 128 visible ASCII characters; this one has ${key.length}`);
    }
    const body = JSON.stringify({
      image_url: order.imageUrl,
      scale: order.scale ?? 2,
      face_enhance: order.faceEnhance ?? false,
    });
    const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
    const reading = await this.persist("upscales", { method: "POST", headers, body }, 202);
    return new Task(this, reading.state, reading.isReplay);
  }

  /** Reads a task once; {@link ApiError} 404 when this account has none of this id. */
  async read(taskId: string): Promise<Task> {
    return new Task(this, (await this.reading(taskId)).state, false);
  }

  /** @internal */
  async reading(taskId: string): Promise<Reading> {
    return this.persist(`upscales/${encodeURIComponent(taskId)}`, {}, 200);
  }

  /** @internal The result's bytes, once, checked. */
  async fetchResult(state: State): Promise<Uint8Array> {
    if (state.status !== "succeeded") throw new TypeError(`task ${state.id} has no result: it is ${state.status}`);
    // Without the key: the host of the results must not see it.
    const signal = AbortSignal.timeout(this.patience.total * 1000);
    const [response, png] = await this.receive(state.resultUrl, { signal }, RESULT_BYTES_MAX);
    if (response.status !== 200) throw refusal(response, decode(png));
    return check(png, state.sha256, response.headers.get("ETag"));
  }

  private async persist(path: string, request: RequestInit, expected: number): Promise<Reading> {
    const tries = new Tries(this.patience);
    for (;;) {
      try {
        return await this.once(path, request, expected);
      } catch (error) {
        await tries.waitAfter(error);
      }
    }
  }

  private async once(path: string, request: RequestInit, expected: number): Promise<Reading> {
    const headers = { ...request.headers, Authorization: `Bearer ${this.apiKey}` };
    const signal = AbortSignal.timeout(this.patience.request * 1000);
    const options: RequestInit = { ...request, headers, signal, redirect: "manual" };
    const [response, bytes] = await this.receive(`${this.base}/api/v1/${path}`, options, ANSWER_BYTES_MAX);
    const body = decode(bytes);
    if (response.status >= 400) throw refusal(response, body);
    if (response.status !== expected) throw new Unexpected(`answered ${response.status}, not ${expected}`);
    return {
      state: readState(body, response.headers.get("X-Result-SHA256") ?? undefined),
      isReplay: response.headers.has("Idempotent-Replayed"),
      retryAfter: askedWait(response),
    };
  }

  /** An answer whole, up to `most` bytes. Errors do not name the address: a result's holds a signature. */
  private async receive(url: string, options: RequestInit, most: number): Promise<[Response, Uint8Array]> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    try {
      const response = await this.fetch.call(undefined, url, options);
      for await (const piece of response.body ?? []) {
        pieces.push(piece);
        length += piece.byteLength;
        if (length > most) throw new Unexpected(`an answer of more than ${most} bytes`);
      }
      return [response, Buffer.concat(pieces)];
    } catch (error) {
      if (error instanceof UpscaleError) throw error;
      const cause = error instanceof Error ? error.name : "unknown error";
      throw new Unreachable(`the service cannot be reached: ${cause}`);
    }
  }
}

/** A task and the client that knows it. */
export class Task {
  constructor(
    private readonly client: Upscale,
    /** As the last answer told it. */
    public state: State,
    /** Whether an earlier request had made it: nothing more was reserved. */
    readonly isReplay: boolean,
  ) {}

  /** Names the task for ever. */
  get id(): string {
    return this.state.id;
  }

  /** Reads it once. */
  async refresh(): Promise<this> {
    this.state = (await this.client.reading(this.id)).state;
    return this;
  }

  /**
   * Until it is over: the first poll after 3 s, later ones up to 10 s apart, as the service asks. Throws
   * {@link TaskFailed}, or {@link GaveUp} when patience ends (the task goes on).
   */
  async wait(): Promise<this> {
    const { patience } = this.client;
    const tries = new Tries(patience);
    let pause = patience.firstPoll;
    while (this.state.status === "processing") {
      if (tries.waited + pause > patience.total) throw new GaveUp(this.id, tries.waited);
      await sleep(pause * 1000);
      const reading = await this.client.reading(this.id);
      this.state = reading.state;
      pause = Math.max(Math.min(reading.retryAfter ?? pause * 1.5, patience.slowestPoll), patience.firstPoll);
    }
    if (this.state.status === "failed") throw new TaskFailed(this.id, this.state.failure);
    return this;
  }

  /** The PNG, whole: its SHA-256 is checked, and a broken or stale download is tried again with a new link. */
  async download(): Promise<Uint8Array> {
    const tries = new Tries(this.client.patience, DOWNLOAD_TRIES);
    for (;;) {
      try {
        return await this.client.fetchResult(this.state);
      } catch (error) {
        await tries.waitAfter(error);
      }
      await this.refresh();
    }
  }
}

interface Reading {
  readonly state: State;
  readonly isReplay: boolean;
  readonly retryAfter: number | undefined;
}

/** A body that is not the service's (a proxy's, say) becomes the message, shortened. */
function refusal(response: Response, body: string): ApiError {
  const wait = askedWait(response);
  try {
    const { error } = JSON.parse(body);
    return new ApiError(response.status, error.type, error.code, error.message, error.request_id, wait);
  } catch {
    return new ApiError(response.status, "unknown", "unknown", body.slice(0, 200), undefined, wait);
  }
}

function askedWait(response: Response): number | undefined {
  const text = response.headers.get("Retry-After") ?? "";
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Against what the task said, else against the result's ETag where that is a SHA-256. */
function check(png: Uint8Array, told: string | undefined, tag: string | null): Uint8Array {
  const expected = [told, tag?.replaceAll('"', "")].find((text) => text !== undefined && /^[0-9a-f]{64}$/.test(text));
  if (expected === undefined) throw new Unexpected("the service told no SHA-256 of the result");
  const found = createHash("sha256").update(png).digest("hex");
  if (found !== expected) throw new Damaged(`the result's SHA-256 is ${found}, not ${expected}`);
  return png;
}
