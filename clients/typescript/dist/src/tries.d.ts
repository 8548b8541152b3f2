/** The time of one call, and how long to wait between tries. */
/** What one call may take. */
export interface Limits {
    /** Seconds from its first request to its end, retries and waiting included. */
    readonly timeout: number;
    /** How often one request is sent again. */
    readonly maxRetries: number;
    /** Seconds for one request, besides those for which it asks to be held. */
    readonly requestTimeout: number;
}
/** Seconds that a request may be held, and where the service holds nothing, the contract's between two questions. */
export declare const PAUSES: {
    heldMax: number;
    heldAtLeast: number;
    firstPoll: number;
    slowestPoll: number;
};
/** The time of one call. */
export declare class Clock {
    readonly limits: Limits;
    readonly signal: AbortSignal | undefined;
    private readonly started;
    constructor(limits: Limits, signal: AbortSignal | undefined);
    /** Seconds so far. */
    get waited(): number;
    /** How long the next request may be held: whole seconds of what is left. */
    hold(): number;
    /** Until the next question; throws {@link PollTimeoutError} when that would be too late. */
    pause(taskId: string, seconds: number): Promise<void>;
    sleep(seconds: number): Promise<void>;
}
/**
 * Counts the tries of one request and waits before the next: what the service asks for, else exponentially with full
 * jitter, so that clients that failed together do not come back together.
 */
export declare class Tries {
    private readonly clock;
    private readonly most;
    private count;
    constructor(clock: Clock, most: number);
    /** Throws the error again when it is not temporary, or tries or time are used up. */
    waitAfter(error: unknown): Promise<void>;
}
