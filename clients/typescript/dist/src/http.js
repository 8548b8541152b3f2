/** How a request is sent, bounded and understood. */
import { APIConnectionError, classOf, UnexpectedResponseError, UpscaleError } from "./errors.js";
import { readTask } from "./task.js";
import { PAUSES, Tries } from "./tries.js";
/** Longest answer to a create or a read; real ones have less than 3 KiB. */
const ANSWER_BYTES_MAX = 64 << 10;
/** One service with one key. */
export class Http {
    base;
    fetch;
    #apiKey;
    constructor(base, apiKey, fetch) {
        this.base = base;
        this.fetch = fetch;
        this.#apiKey = apiKey;
    }
    /** Sends until the answer is no temporary failure, or tries or time are used up. */
    async ask(question, clock) {
        const tries = new Tries(clock, clock.limits.maxRetries);
        for (;;) {
            try {
                return await this.once(question, clock);
            }
            catch (error) {
                await tries.waitAfter(error);
            }
        }
    }
    async once(question, clock) {
        const { path, request, expected, held, idempotencyKey } = question;
        const prefer = held > 0 ? { Prefer: `wait=${held}` } : {};
        const headers = { ...request.headers, ...prefer, Authorization: `Bearer ${this.#apiKey}` };
        const options = { ...request, headers, redirect: "manual" };
        const began = clock.waited;
        const bounds = { seconds: clock.limits.requestTimeout + held, bytes: ANSWER_BYTES_MAX };
        const [response, bytes] = await this.receive(`${this.base}/api/v1/${path}`, options, bounds, clock.signal);
        const body = new TextDecoder().decode(bytes);
        if (response.status >= 400)
            throw refusal(response, body);
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
    async receive(url, options, bounds, signal, onBytes) {
        const pieces = [];
        let length = 0;
        const late = AbortSignal.timeout(Math.max(1, Math.ceil(bounds.seconds * 1000)));
        try {
            const both = signal === undefined ? late : AbortSignal.any([late, signal]);
            const response = await this.fetch.call(undefined, url, { ...options, signal: both });
            const total = Number(response.headers.get("Content-Length") ?? Number.NaN);
            for await (const piece of response.body ?? []) {
                pieces.push(piece);
                length += piece.byteLength;
                if (length > bounds.bytes)
                    throw new UnexpectedResponseError(`an answer of more than ${bounds.bytes} bytes`);
                onBytes?.(length, Number.isNaN(total) ? undefined : total);
            }
            return [response, Buffer.concat(pieces)];
        }
        catch (error) {
            // The caller who ended the call gets their own reason.
            signal?.throwIfAborted();
            if (error instanceof UpscaleError)
                throw error;
            throw new APIConnectionError(`the service cannot be reached: ${reason(error)}`, { cause: error });
        }
    }
}
/** Such as `ECONNREFUSED`, which fetch hides in the cause of a TypeError. */
function reason(error) {
    if (!(error instanceof Error))
        return "unknown error";
    const { cause } = error;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
    return code ?? error.name;
}
/** A body that is not the service's (a proxy's, say) becomes the message, shortened. */
export function refusal(response, body) {
    const { status } = response;
    const wait = askedWait(response);
    const Kind = classOf(status);
    try {
        const { error } = JSON.parse(body);
        return new Kind(status, error.type, error.code, error.message, error.request_id, wait);
    }
    catch {
        return new Kind(status, "unknown", "unknown", body.slice(0, 200), undefined, wait);
    }
}
function askedWait(response) {
    const text = response.headers.get("Retry-After") ?? "";
    return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}
