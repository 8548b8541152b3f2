/** What can go wrong, apart by what the caller can do about it. */

import type { Failure } from "./task.js";

/** The root of every error of this package. */
export class UpscaleError extends Error {
  /** Of the order, minted or your own: sent again under it, the order is the same task and the same charge. */
  idempotencyKey?: string;
  /** Of the task, once it was known. */
  taskId?: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The service could not be reached, or the connection broke; `cause` says why. */
export class APIConnectionError extends UpscaleError {}

/** An answer that this client does not understand, such as an unknown status. */
export class UnexpectedResponseError extends UpscaleError {}

/** The result did not arrive as the service made it. */
export class ChecksumError extends UpscaleError {}

/** The timeout passed first. The task goes on: wait for `taskId` later; that costs nothing. */
export class PollTimeoutError extends UpscaleError {
  declare taskId: string;

  constructor(taskId: string, waited: number) {
    super(`task ${taskId} is not over after ${Math.round(waited)} s; it goes on and can be waited for later`);
    this.taskId = taskId;
  }
}

/** The task ended without a result and without a charge. */
export class TaskFailedError extends UpscaleError {
  declare taskId: string;

  constructor(
    taskId: string,
    readonly failure: Failure,
  ) {
    super(`task ${taskId} failed: ${failure.message}`);
    this.taskId = taskId;
  }
}

/** An answer of the service that is no success. */
export class APIStatusError extends UpscaleError {
  constructor(
    /** HTTP status. */
    readonly status: number,
    /** Such as `invalid_request_error`. */
    readonly type: string,
    /** Such as `invalid_scale`. */
    readonly code: string,
    /** For people. */
    readonly detail: string,
    /** For support. */
    readonly requestId: string | undefined,
    /** Seconds the service asks to wait. */
    readonly retryAfter: number | undefined,
  ) {
    super(`${status} ${code}: ${detail}${requestId === undefined ? "" : ` (request ${requestId})`}`);
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return [408, 429, 500, 502, 503, 504].includes(this.status);
  }
}

/** 400: mend the request. */
export class BadRequestError extends APIStatusError {}
/** 401: the key is missing, wrong or revoked. */
export class AuthenticationError extends APIStatusError {}
/** 402: buy credits. */
export class InsufficientCreditsError extends APIStatusError {}
/** 403: the account or the key may not. */
export class PermissionDeniedError extends APIStatusError {}
/** 404: no such task of this account. */
export class NotFoundError extends APIStatusError {}
/** 409: the idempotency key belongs to another order. */
export class ConflictError extends APIStatusError {}
/** 410: the result is no longer kept. */
export class GoneError extends APIStatusError {}
/** 429: later, as `retryAfter` says. */
export class RateLimitError extends APIStatusError {}
/** 5xx: not your fault. */
export class InternalServerError extends APIStatusError {}

const BY_STATUS: Readonly<Record<number, typeof APIStatusError>> = {
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
export function classOf(status: number): typeof APIStatusError {
  return status >= 500 ? InternalServerError : (BY_STATUS[status] ?? APIStatusError);
}
