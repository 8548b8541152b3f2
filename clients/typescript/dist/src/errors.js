/** What can go wrong, apart by what the caller can do about it. */
/** The root of every error of this package. */
export class UpscaleError extends Error {
    /** Of the order, minted or your own: sent again under it, the order is the same task and the same charge. */
    idempotencyKey;
    /** Of the task, once it was known. */
    taskId;
    constructor(message, options) {
        super(message, options);
        this.name = new.target.name;
    }
}
/** The service could not be reached, or the connection broke; `cause` says why. */
export class APIConnectionError extends UpscaleError {
}
/** An answer that this client does not understand, such as an unknown status. */
export class UnexpectedResponseError extends UpscaleError {
}
/** The result did not arrive as the service made it. */
export class ChecksumError extends UpscaleError {
}
/** The timeout passed first. The task goes on: wait for `taskId` later; that costs nothing. */
export class PollTimeoutError extends UpscaleError {
    constructor(taskId, waited) {
        super(`task ${taskId} is not over after ${Math.round(waited)} s; it goes on and can be waited for later`);
        this.taskId = taskId;
    }
}
/** The task ended without a result and without a charge. */
export class TaskFailedError extends UpscaleError {
    failure;
    constructor(taskId, failure) {
        super(`task ${taskId} failed: ${failure.message}`);
        this.failure = failure;
        this.taskId = taskId;
    }
}
/** An answer of the service that is no success. */
export class APIStatusError extends UpscaleError {
    status;
    type;
    code;
    detail;
    requestId;
    retryAfter;
    constructor(
    /** HTTP status. */
    status, 
    /** Such as `invalid_request_error`. */
    type, 
    /** Such as `invalid_scale`. */
    code, 
    /** For people. */
    detail, 
    /** For support. */
    requestId, 
    /** Seconds the service asks to wait. */
    retryAfter) {
        super(`${status} ${code}: ${detail}${requestId === undefined ? "" : ` (request ${requestId})`}`);
        this.status = status;
        this.type = type;
        this.code = code;
        this.detail = detail;
        this.requestId = requestId;
        this.retryAfter = retryAfter;
    }
    /** Whether the same request may succeed later. */
    get isTemporary() {
        return [408, 429, 500, 502, 503, 504].includes(this.status);
    }
}
/** 400: mend the request. */
export class BadRequestError extends APIStatusError {
}
/** 401: the key is missing, wrong or revoked. */
export class AuthenticationError extends APIStatusError {
}
/** 402: buy credits. */
export class InsufficientCreditsError extends APIStatusError {
}
/** 403: the account or the key may not. */
export class PermissionDeniedError extends APIStatusError {
}
/** 404: no such task of this account. */
export class NotFoundError extends APIStatusError {
}
/** 409: the idempotency key belongs to another order. */
export class ConflictError extends APIStatusError {
}
/** 410: the result is no longer kept. */
export class GoneError extends APIStatusError {
}
/** 429: later, as `retryAfter` says. */
export class RateLimitError extends APIStatusError {
}
/** 5xx: not your fault. */
export class InternalServerError extends APIStatusError {
}
const BY_STATUS = {
    400: BadRequestError,
    401: AuthenticationError,
    402: InsufficientCreditsError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: RateLimitError,
};
/** Which error a status is. */
export function classOf(status) {
    return status >= 500 ? InternalServerError : (BY_STATUS[status] ?? APIStatusError);
}
