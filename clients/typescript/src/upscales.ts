/** The verbs of tasks: create, retrieve, wait, run, download. */

import { createHash, randomBytes } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";

import { ChecksumError, TaskFailedError, UnexpectedResponseError, UpscaleError } from "./errors.js";
import { type Http, type OnBytes, type Question, type Reading, refusal } from "./http.js";
import type { SucceededTask, Task } from "./task.js";
import { Clock, type Limits, PAUSES, Tries } from "./tries.js";

/** The largest result: 12 MP of 16-bit RGBA that does not compress. */
const RESULT_BYTES_MAX = 128 << 20;
const DOWNLOAD_RETRIES = 3;

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

/** Of one call. */
export interface CallOptions {
  /** Ends the call; the task goes on. */
  readonly signal?: AbortSignal;
  /** Hears of the task each time it was read. */
  readonly onProgress?: (task: Task) => void;
}

/** Of one download. */
export interface DownloadOptions {
  readonly signal?: AbortSignal;
  /** Hears how many bytes have come, and of how many, where that is known. */
  readonly onProgress?: OnBytes;
}

/** Of many orders. */
export interface ManyOptions {
  readonly signal?: AbortSignal;
  /** At a time: 5. The service recommends 5 to 10. */
  readonly concurrency?: number;
}

/** A new idempotency key of 128 random bits. */
export function mintKey(): string {
  return randomBytes(16).toString("hex");
}

/** The tasks of one account; of `Upscale.upscales`. */
export class Upscales {
  constructor(
    private readonly http: Http,
    private readonly limits: Limits,
  ) {}

  /**
   * Orders and waits for the end. Throws {@link TaskFailedError}, {@link PollTimeoutError} (the task goes on), and as
   * {@link create}.
   */
  async run(order: Order, options: CallOptions = {}): Promise<SucceededTask> {
    const key = checkedKey(order.idempotencyKey);
    const clock = new Clock(this.limits, options.signal);
    return marked({ idempotencyKey: key }, async () => {
      const reading = await this.http.ask(creating(order, key, clock.hold()), clock);
      return this.untilOver(reading, clock, options.onProgress);
    });
  }

  /** Each order with its task, or with what went wrong, as they end. */
  async *runMany(
    orders: Iterable<Order>,
    options: ManyOptions = {},
  ): AsyncGenerator<[order: Order, outcome: SucceededTask | UpscaleError]> {
    const running: Running = new Map();
    const call = options.signal === undefined ? {} : { signal: options.signal };
    for (const order of orders) {
      const name = Symbol();
      running.set(name, outcome(name, order, this.run(order, call)));
      if (running.size >= (options.concurrency ?? 5)) yield await first(running);
    }
    while (running.size > 0) yield await first(running);
  }

  /**
   * Creates the task, or finds the one that this key made before, and does not wait for its end. What is temporary is
   * tried again under the same key, so nothing is paid twice. Throws {@link APIStatusError} with the service's words, or
   * {@link APIConnectionError}.
   */
  async create(order: Order, options: Pick<CallOptions, "signal"> = {}): Promise<Task> {
    const key = checkedKey(order.idempotencyKey);
    const clock = new Clock(this.limits, options.signal);
    return marked({ idempotencyKey: key }, async () => (await this.http.ask(creating(order, key, 0), clock)).task);
  }

  /** Reads a task once, as it is now; {@link NotFoundError} when this account has none of this id. */
  async retrieve(taskId: string, options: Pick<CallOptions, "signal"> = {}): Promise<Task> {
    const clock = new Clock(this.limits, options.signal);
    return marked({ taskId }, async () => (await this.http.ask(reading(taskId, undefined, 0), clock)).task);
  }

  /**
   * Waits for the end of a task, or of the one of this id. The service holds the question until then; where it does not,
   * it is asked again as it says: first after 3 s, later up to 10 s apart. Throws as {@link run}.
   */
  async wait(task: Task | string, options: CallOptions = {}): Promise<SucceededTask> {
    const [taskId, key] = typeof task === "string" ? [task, undefined] : [task.id, task.idempotencyKey];
    const clock = new Clock(this.limits, options.signal);
    return marked({ taskId, idempotencyKey: key }, async () => {
      const read = await this.http.ask(reading(taskId, key, clock.hold()), clock);
      return this.untilOver(read, clock, options.onProgress);
    });
  }

  /** The PNG, whole: its SHA-256 is checked, and a broken or stale download is tried again with a new link. */
  async download(task: SucceededTask, options?: DownloadOptions): Promise<Uint8Array>;
  /** The PNG into a file, which appears whole or not at all. */
  async download(task: SucceededTask, path: string, options?: DownloadOptions): Promise<void>;
  async download(
    task: SucceededTask,
    pathOrOptions?: string | DownloadOptions,
    more?: DownloadOptions,
  ): Promise<Uint8Array | void> {
    const path = typeof pathOrOptions === "string" ? pathOrOptions : undefined;
    const options = (typeof pathOrOptions === "string" ? more : pathOrOptions) ?? {};
    const mark = { taskId: task.id, idempotencyKey: task.idempotencyKey };
    const png = await marked(mark, () => this.fetchWhole(task, options));
    if (path === undefined) return png;
    await writeFile(`${path}.part`, png);
    await rename(`${path}.part`, path);
  }

  private async untilOver(
    last: Reading,
    clock: Clock,
    onProgress: ((task: Task) => void) | undefined,
  ): Promise<SucceededTask> {
    let pause = PAUSES.firstPoll;
    for (let read = last; ; ) {
      const { task } = read;
      onProgress?.(task);
      if (task.status === "succeeded") return task;
      if (task.status === "failed") throw new TaskFailedError(task.id, task.failure);
      const asked = Math.max(Math.min(read.retryAfter ?? pause * 1.5, PAUSES.slowestPoll), PAUSES.firstPoll);
      pause = read.wasHeld ? 0 : asked;
      await clock.pause(task.id, pause);
      read = await this.http.ask(reading(task.id, task.idempotencyKey, clock.hold()), clock);
    }
  }

  private async fetchWhole(task: SucceededTask, options: DownloadOptions): Promise<Uint8Array> {
    const clock = new Clock(this.limits, options.signal);
    const tries = new Tries(clock, DOWNLOAD_RETRIES);
    for (let current = task; ; ) {
      try {
        return await this.fetchOnce(current, clock, options.onProgress);
      } catch (error) {
        await tries.waitAfter(error);
      }
      const newer = await this.retrieve(task.id);
      if (newer.status === "succeeded") current = newer;
    }
  }

  /** Without the key: the host of the results must not see it. */
  private async fetchOnce(task: SucceededTask, clock: Clock, onBytes: OnBytes | undefined): Promise<Uint8Array> {
    const bounds = { seconds: clock.limits.timeout - clock.waited, bytes: RESULT_BYTES_MAX };
    const [response, png] = await this.http.receive(task.result.url, {}, bounds, clock.signal, onBytes);
    if (response.status !== 200) throw refusal(response, new TextDecoder().decode(png));
    return check(png, task.result.sha256, response.headers.get("ETag"));
  }
}

function creating(order: Order, idempotencyKey: string, held: number): Question {
  const body = JSON.stringify({
    image_url: order.imageUrl,
    scale: order.scale ?? 2,
    face_enhance: order.faceEnhance ?? false,
  });
  const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
  return { path: "upscales", request: { method: "POST", headers, body }, expected: 202, held, idempotencyKey };
}

function reading(taskId: string, idempotencyKey: string | undefined, held: number): Question {
  return { path: `upscales/${encodeURIComponent(taskId)}`, request: {}, expected: 200, held, idempotencyKey };
}

function checkedKey(key: string | undefined): string {
  if (key === undefined) return mintKey();
  if (/^[!-~]{8,128}$/.test(key)) return key;
  throw new TypeError(`an idempotency key has 8 to 128 visible ASCII characters; this one has ${key.length}`);
}

/** What a call was about stands on every error of it. */
async function marked<T>(
  mark: { readonly taskId?: string; readonly idempotencyKey?: string | undefined },
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof UpscaleError) {
      if (mark.taskId !== undefined) error.taskId ??= mark.taskId;
      if (mark.idempotencyKey !== undefined) error.idempotencyKey ??= mark.idempotencyKey;
    }
    throw error;
  }
}

/** Orders under way: each promise gives its own name, its order, and what came of it. */
type Running = Map<symbol, Promise<[name: symbol, order: Order, outcome: SucceededTask | UpscaleError]>>;

async function outcome(
  name: symbol,
  order: Order,
  task: Promise<SucceededTask>,
): Promise<[symbol, Order, SucceededTask | UpscaleError]> {
  try {
    return [name, order, await task];
  } catch (error) {
    if (error instanceof UpscaleError) return [name, order, error];
    throw error;
  }
}

async function first(running: Running): Promise<[Order, SucceededTask | UpscaleError]> {
  const [name, order, outcome] = await Promise.race(running.values());
  running.delete(name);
  return [order, outcome];
}

/** Against what the task said, else against the result's ETag where that is a SHA-256. */
function check(png: Uint8Array, told: string | undefined, tag: string | null): Uint8Array {
  const expected = [told, tag?.replaceAll('"', "")].find((text) => text !== undefined && /^[0-9a-f]{64}$/.test(text));
  if (expected === undefined) throw new UnexpectedResponseError("the service sent no SHA-256 of the result");
  const found = createHash("sha256").update(png).digest("hex");
  if (found !== expected) throw new ChecksumError(`the result's SHA-256 is ${found}, not ${expected}`);
  return png;
}
