/** Client of the Upscale API. */

export { mintKey, Task, Upscale, type Options, type Order } from "./client.js";
export { ApiError, Damaged, GaveUp, TaskFailed, Unexpected, Unreachable, UpscaleError } from "./errors.js";
export type { Failed, Failure, Processing, State, Succeeded } from "./state.js";
export type { Patience } from "./tries.js";
