/** Client of the Upscale API. */

export { Upscale, type Options } from "./client.js";
export {
  APIConnectionError,
  APIStatusError,
  AuthenticationError,
  BadRequestError,
  ChecksumError,
  ConflictError,
  GoneError,
  InsufficientCreditsError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  PollTimeoutError,
  RateLimitError,
  TaskFailedError,
  UnexpectedResponseError,
  UpscaleError,
} from "./errors.js";
export type { FailedTask, Failure, ProcessingTask, Result, SucceededTask, Task } from "./task.js";
export { mintKey, Upscales, type CallOptions, type DownloadOptions, type ManyOptions, type Order } from "./upscales.js";
