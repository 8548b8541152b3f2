/** How long things may take and how long to wait between tries. */

import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, Damaged, Unreachable } from "./errors.js";

/** In seconds. The defaults are the contract's. */
export interface Patience {
  /** One call, retries and waits included: 300. The service ends every task within 270 s. */
  readonly total: number;
  /** One request: 30. */
  readonly request: number;
  /** Before the first poll, and the shortest pause between two: 3. */
  readonly firstPoll: number;
  /** The longest pause between two polls: 10. */
  readonly slowestPoll: number;
}

export const DEFAULT_PATIENCE: Patience = { total: 300, request: 30, firstPoll: 3, slowestPoll: 10 };

const BACKOFF_BASE = 0.5;
const BACKOFF_CAP = 10;

/**
 * Counts the tries of one request and waits before the next: what the service asks for, else exponentially with full
 * jitter, so that clients that failed together do not come back together.
 */
export class Tries {
  private readonly started = performance.now();
  private count = 0;

  constructor(
    private readonly patience: Patience,
    private readonly most = Number.POSITIVE_INFINITY,
  ) {}

  /** Seconds so far. */
  get waited(): number {
    return (performance.now() - this.started) / 1000;
  }

  /** Throws the error again when it is not temporary or patience would end. */
  async waitAfter(error: unknown): Promise<void> {
    const refused = error instanceof ApiError ? error : undefined;
    const isTemporary = error instanceof Unreachable || error instanceof Damaged || refused?.isTemporary === true;
    // Only a result's link is refused so, once its hour is over: a new reading gives a new one.
    const isStale = refused?.code === "result_url_expired";
    const asked = refused?.retryAfter;
    const ceiling = Math.min(BACKOFF_BASE * 2 ** Math.min(this.count, 10), BACKOFF_CAP);
    const wait = asked === undefined ? Math.random() * ceiling : asked + Math.random();
    this.count += 1;
    if (!(isTemporary || isStale) || this.count >= this.most || this.waited + wait > this.patience.total) throw error;
    await sleep(wait * 1000);
  }
}
