/** The verbs of tasks: create, retrieve, wait, run, download. */
import { UpscaleError } from "./errors.js";
import { type Http, type OnBytes } from "./http.js";
import type { SucceededTask, Task } from "./task.js";
import { type Limits } from "./tries.js";
/** What is asked for. */
export interface Order {
    /** Public HTTPS address whose path ends in .jpg, .jpeg, .png or .webp. */
    readonly imageUrl: string;
    /** 2 by default. */
    readonly scale?: 2 | 4;
    /** Improve faces; false by default. */
    readonly faceEnhance?: boolean;
    /** Names the order: the same key is the same task and the same charge. Minted where absent. */
    readonly idempotencyKey?: string;
}
/** Of one call. */
export interface CallOptions {
    /** Ends the call; the task goes on. */
    readonly signal?: AbortSignal;
    /** Hears of the task each time it was read. */
    readonly onProgress?: (task: Task) => void;
}
/** Of one download. */
export interface DownloadOptions {
    readonly signal?: AbortSignal;
    /** Hears how many bytes have come, and of how many, where that is known. */
    readonly onProgress?: OnBytes;
}
/** Of many orders. */
export interface ManyOptions {
    readonly signal?: AbortSignal;
    /** At a time: 5. The service recommends 5 to 10. */
    readonly concurrency?: number;
}
/** A new idempotency key of 128 random bits. */
export declare function mintKey(): string;
/** The tasks of one account; of `Upscale.upscales`. */
export declare class Upscales {
    private readonly http;
    private readonly limits;
    constructor(http: Http, limits: Limits);
    /**
     * Orders and waits for the end. Throws {@link TaskFailedError}, {@link PollTimeoutError} (the task goes on), and as
     * {@link create}.
     */
    run(order: Order, options?: CallOptions): Promise<SucceededTask>;
    /** Each order with its task, or with what went wrong, as they end. */
    runMany(orders: Iterable<Order>, options?: ManyOptions): AsyncGenerator<[order: Order, outcome: SucceededTask | UpscaleError]>;
    /**
     * Creates the task, or finds the one that this key made before, and does not wait for its end. What is temporary is
     * tried again under the same key, so nothing is paid twice. Throws {@link APIStatusError} with the service's words, or
     * {@link APIConnectionError}.
     */
    create(order: Order, options?: Pick<CallOptions, "signal">): Promise<Task>;
    /** Reads a task once, as it is now; {@link NotFoundError} when this account has none of this id. */
    retrieve(taskId: string, options?: Pick<CallOptions, "signal">): Promise<Task>;
    /**
     * Waits for the end of a task, or of the one of this id. The service holds the question until then; where it does not,
     * it is asked again as it says: first after 3 s, later up to 10 s apart. Throws as {@link run}.
     */
    wait(task: Task | string, options?: CallOptions): Promise<SucceededTask>;
    /** The PNG, whole: its SHA-256 is checked, and a broken or stale download is tried again with a new link. */
    download(task: SucceededTask, options?: DownloadOptions): Promise<Uint8Array>;
    /** The PNG into a file, which appears whole or not at all. */
    download(task: SucceededTask, path: string, options?: DownloadOptions): Promise<void>;
    private untilOver;
    private fetchWhole;
    /** Without the key: the host of the results must not see it. */
    private fetchOnce;
}
