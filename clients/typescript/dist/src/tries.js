/** The time of one call, and how long to wait between tries. */
import { setTimeout as sleep } from "node:timers/promises";
import { APIConnectionError, APIStatusError, ChecksumError, PollTimeoutError } from "./errors.js";
/** Seconds that a request may be held, and where the service holds nothing, the contract's between two questions. */
export const PAUSES = { heldMax: 30, heldAtLeast: 0.5, firstPoll: 3, slowestPoll: 10 };
const BACKOFF_BASE = 0.5;
const BACKOFF_CAP = 10;
/** The time of one call. */
export class Clock {
    limits;
    signal;
    started = performance.now();
    constructor(limits, signal) {
        this.limits = limits;
        this.signal = signal;
    }
    /** Seconds so far. */
    get waited() {
        return (performance.now() - this.started) / 1000;
    }
    /** How long the next request may be held: whole seconds of what is left. */
    hold() {
        return Math.max(0, Math.min(PAUSES.heldMax, Math.floor(this.limits.timeout - this.waited)));
    }
    /** Until the next question; throws {@link PollTimeoutError} when that would be too late. */
    async pause(taskId, seconds) {
        if (this.waited + seconds >= this.limits.timeout)
            throw new PollTimeoutError(taskId, this.waited);
        await this.sleep(seconds);
    }
    async sleep(seconds) {
        this.signal?.throwIfAborted();
        try {
            await sleep(seconds * 1000, undefined, this.signal === undefined ? {} : { signal: this.signal });
        }
        catch (error) {
            this.signal?.throwIfAborted();
            throw error;
        }
    }
}
/**
 * Counts the tries of one request and waits before the next: what the service asks for, else exponentially with full
 * jitter, so that clients that failed together do not come back together.
 */
export class Tries {
    clock;
    most;
    count = 0;
    constructor(clock, most) {
        this.clock = clock;
        this.most = most;
    }
    /** Throws the error again when it is not temporary, or tries or time are used up. */
    async waitAfter(error) {
        const refused = error instanceof APIStatusError ? error : undefined;
        const isBroken = error instanceof APIConnectionError || error instanceof ChecksumError;
        // Only a result's link is refused so, once its hour is over: a new reading gives a new one.
        const isStale = refused?.code === "result_url_expired";
        const asked = refused?.retryAfter;
        const ceiling = Math.min(BACKOFF_BASE * 2 ** Math.min(this.count, 10), BACKOFF_CAP);
        const wait = asked === undefined ? Math.random() * ceiling : asked + Math.random();
        this.count += 1;
        const isLate = this.clock.waited + wait > this.clock.limits.timeout;
        const isTemporary = isBroken || isStale || refused?.isTemporary === true;
        if (!isTemporary || this.count > this.most || isLate)
            throw error;
        await this.clock.sleep(wait);
    }
}
