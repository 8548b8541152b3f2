/** What can go wrong, apart by what the caller can do about it. */
import type { Failure } from "./task.js";
/** The root of every error of this package. */
export declare class UpscaleError extends Error {
    /** Of the order, minted or your own: sent again under it, the order is the same task and the same charge. */
    idempotencyKey?: string;
    /** Of the task, once it was known. */
    taskId?: string;
    constructor(message: string, options?: ErrorOptions);
}
/** The service could not be reached, or the connection broke; `cause` says why. */
export declare class APIConnectionError extends UpscaleError {
}
/** An answer that this client does not understand, such as an unknown status. */
export declare class UnexpectedResponseError extends UpscaleError {
}
/** The result did not arrive as the service made it. */
export declare class ChecksumError extends UpscaleError {
}
/** The timeout passed first. The task goes on: wait for `taskId` later; that costs nothing. */
export declare class PollTimeoutError extends UpscaleError {
    taskId: string;
    constructor(taskId: string, waited: number);
}
/** The task ended without a result and without a charge. */
export declare class TaskFailedError extends UpscaleError {
    readonly failure: Failure;
    taskId: string;
    constructor(taskId: string, failure: Failure);
}
/** An answer of the service that is no success. */
export declare class APIStatusError extends UpscaleError {
    /** HTTP status. */
    readonly status: number;
    /** Such as `invalid_request_error`. */
    readonly type: string;
    /** Such as `invalid_scale`. */
    readonly code: string;
    /** For people. */
    readonly detail: string;
    /** For support. */
    readonly requestId: string | undefined;
    /** Seconds the service asks to wait. */
    readonly retryAfter: number | undefined;
    constructor(
    /** HTTP status. */
    status: number, 
    /** Such as `invalid_request_error`. */
    type: string, 
    /** Such as `invalid_scale`. */
    code: string, 
    /** For people. */
    detail: string, 
    /** For support. */
    requestId: string | undefined, 
    /** Seconds the service asks to wait. */
    retryAfter: number | undefined);
    /** Whether the same request may succeed later. */
    get isTemporary(): boolean;
}
/** 400: mend the request. */
export declare class BadRequestError extends APIStatusError {
}
/** 401: the key is missing, wrong or revoked. */
export declare class AuthenticationError extends APIStatusError {
}
/** 402: buy credits. */
export declare class InsufficientCreditsError extends APIStatusError {
}
/** 403: the account or the key may not. */
export declare class PermissionDeniedError extends APIStatusError {
}
/** 404: no such task of this account. */
export declare class NotFoundError extends APIStatusError {
}
/** 409: the idempotency key belongs to another order. */
export declare class ConflictError extends APIStatusError {
}
/** 410: the result is no longer kept. */
export declare class GoneError extends APIStatusError {
}
/** 429: later, as `retryAfter` says. */
export declare class RateLimitError extends APIStatusError {
}
/** 5xx: not your fault. */
export declare class InternalServerError extends APIStatusError {
}
/** Which error a status is. */
export declare function classOf(status: number): typeof APIStatusError;
