/** How a request is sent, bounded and understood. */
import { APIStatusError } from "./errors.js";
import { type Task } from "./task.js";
import { type Clock } from "./tries.js";
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
export declare class Http {
    #private;
    private readonly base;
    private readonly fetch;
    constructor(base: string, apiKey: string, fetch: typeof globalThis.fetch);
    /** Sends until the answer is no temporary failure, or tries or time are used up. */
    ask(question: Question, clock: Clock): Promise<Reading>;
    private once;
    /** An answer whole, within its bounds. Errors do not name the address: a result's holds a signature. */
    receive(url: string, options: RequestInit, bounds: {
        seconds: number;
        bytes: number;
    }, signal: AbortSignal | undefined, onBytes?: OnBytes): Promise<[Response, Uint8Array]>;
}
/** A body that is not the service's (a proxy's, say) becomes the message, shortened. */
export declare function refusal(response: Response, body: string): APIStatusError;
