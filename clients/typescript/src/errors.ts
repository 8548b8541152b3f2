/** What can go wrong, apart by what the caller can do about it. */

import type { Failure } from "./state.js";

/** The root of every error of this package. */
export class UpscaleError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** An answer of the service that is no success. */
export class ApiError extends UpscaleError {
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

/** The service could not be reached, or the connection broke, until patience ended. */
export class Unreachable extends UpscaleError {}

/** An answer that this client does not understand, such as an unknown status. */
export class Unexpected extends UpscaleError {}

/** The result did not arrive as the service made it. */
export class Damaged extends UpscaleError {}

/** Patience ended first. The task goes on: read it later by `taskId`; that costs nothing. */
export class GaveUp extends UpscaleError {
  constructor(
    readonly taskId: string,
    waited: number,
  ) {
    super(`task ${taskId} is not over after ${Math.round(waited)} s; it goes on and can be read later`);
  }
}

/** The task ended without a result and without a charge. */
export class TaskFailed extends UpscaleError {
  constructor(
    readonly taskId: string,
    readonly failure: Failure,
  ) {
    super(`task ${taskId} failed: ${failure.message}`);
  }
}
