/** How a request is sent, bounded and understood. */

import { APIConnectionError, APIStatusError, classOf, UnexpectedResponseError, UpscaleError } from "./errors.js";
import { readTask, type Task } from "./task.js";
import { type Clock, PAUSES, Tries } from "./tries.js";

/** Longest answer to a create or a read; real ones have less than 3 KiB. */
const ANSWER_BYTES_MAX = 64 << 10;

/** A request about a task. */
export interface Question {
  readonly path: string;
  readonly request: RequestInit;
  readonly expected: number;
  /** Seconds for which it asks to be held. */
  readonly held: number;
  readonly idempotencyKey: string | undefined;
}

/** A task, and what its answer said of the next one. */
export interface Reading {
  readonly task: Task;
  readonly wasHeld: boolean;
  readonly retryAfter: number | undefined;
}

export type OnBytes = (received: number, total: number | undefined) => void;

/** One service with one key. */
export class Http {
  readonly #apiKey: string;

  constructor(
    private readonly base: string,
    apiKey: string,
    private readonly fetch: typeof globalThis.fetch,
  ) {
    this.#apiKey = apiKey;
  }

  /** Sends until the answer is no temporary failure, or tries or time are used up. */
  async ask(question: Question, clock: Clock): Promise<Reading> {
    const tries = new Tries(clock, clock.limits.maxRetries);
    for (;;) {
      try {
        return await this.once(question, clock);
      } catch (error) {
        await tries.waitAfter(error);
      }
    }
  }

  private async once(question: Question, clock: Clock): Promise<Reading> {
    const { path, request, expected, held, idempotencyKey } = question;
    const prefer = held > 0 ? { Prefer: `wait=${held}` } : {};
    const headers = { ...request.headers, ...prefer, Authorization: `Bearer ${this.#apiKey}` };
    const options: RequestInit = { ...request, headers, redirect: "manual" };
    const began = clock.waited;
    const bounds = { seconds: clock.limits.requestTimeout + held, bytes: ANSWER_BYTES_MAX };
    const [response, bytes] = await this.receive(`${this.base}/api/v1/${path}`, options, bounds, clock.signal);
    const body = new TextDecoder().decode(bytes);
    if (response.status >= 400) throw refusal(response, body);
    if (response.status !== expected) {
      throw new UnexpectedResponseError(`answered ${response.status}, not ${expected}`);
    }
    const isReplay = response.headers.has("Idempotent-Replayed");
    const sha256 = response.headers.get("X-Result-SHA256") ?? undefined;
    // A service that says it held a request and answers sooner is not believed: that would be a loop without a pause.
    const saysHeld = response.headers.has("Preference-Applied");
    return {
      task: readTask(body, { sha256, idempotencyKey, isReplay }),
      wasHeld: saysHeld && clock.waited - began >= PAUSES.heldAtLeast,
      retryAfter: askedWait(response),
    };
  }

  /** An answer whole, within its bounds. Errors do not name the address: a result's holds a signature. */
  async receive(
    url: string,
    options: RequestInit,
    bounds: { seconds: number; bytes: number },
    signal: AbortSignal | undefined,
    onBytes?: OnBytes,
  ): Promise<[Response, Uint8Array]> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    const late = AbortSignal.timeout(Math.max(1, Math.ceil(bounds.seconds * 1000)));
    try {
      const both = signal === undefined ? late : AbortSignal.any([late, signal]);
      const response = await this.fetch.call(undefined, url, { ...options, signal: both });
      const total = Number(response.headers.get("Content-Length") ?? Number.NaN);
      for await (const piece of response.body ?? []) {
        pieces.push(piece);
        length += piece.byteLength;
        if (length > bounds.bytes) throw new UnexpectedResponseError(`an answer of more than ${bounds.bytes} bytes`);
        onBytes?.(length, Number.isNaN(total) ? undefined : total);
      }
      return [response, Buffer.concat(pieces)];
    } catch (error) {
      // The caller who ended the call gets their own reason.
      signal?.throwIfAborted();
      if (error instanceof UpscaleError) throw error;
      throw new APIConnectionError(`the service cannot be reached: ${reason(error)}`, { cause: error });
    }
  }
}

/** Such as `ECONNREFUSED`, which fetch hides in the cause of a TypeError. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
  return code ?? error.name;
}

/** A body that is not the service's (a proxy's, say) becomes the message, shortened. */
export function refusal(response: Response, body: string): APIStatusError {
  const { status } = response;
  const wait = askedWait(response);
  const Kind = classOf(status);
  try {
    const { error } = JSON.parse(body);
    return new Kind(status, error.type, error.code, error.message, error.request_id, wait);
  } catch {
    return new Kind(status, "unknown", "unknown", body.slice(0, 200), undefined, wait);
  }
}

function askedWait(response: Response): number | undefined {
  const text = response.headers.get("Retry-After") ?? "";
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}
