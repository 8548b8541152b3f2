/** Client of the Upscale API. */
export { Upscale } from "./client.js";
export { APIConnectionError, APIStatusError, AuthenticationError, BadRequestError, ChecksumError, ConflictError, GoneError, InsufficientCreditsError, InternalServerError, NotFoundError, PermissionDeniedError, PollTimeoutError, RateLimitError, TaskFailedError, UnexpectedResponseError, UpscaleError, } from "./errors.js";
export { mintKey, Upscales } from "./upscales.js";
