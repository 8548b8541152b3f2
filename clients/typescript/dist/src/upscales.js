/** The verbs of tasks: create, retrieve, wait, run, download. */
import { createHash, randomBytes } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";
import { ChecksumError, TaskFailedError, UnexpectedResponseError, UpscaleError } from "./errors.js";
import { refusal } from "./http.js";
import { Clock, PAUSES, Tries } from "./tries.js";
/** The largest result: 12 MP of 16-bit RGBA that does not compress. */
const RESULT_BYTES_MAX = 128 << 20;
const DOWNLOAD_RETRIES = 3;
/** A new idempotency key of 128 random bits. */
export function mintKey() {
    return randomBytes(16).toString("hex");
}
/** The tasks of one account; of `Upscale.upscales`. */
export class Upscales {
    http;
    limits;
    constructor(http, limits) {
        this.http = http;
        this.limits = limits;
    }
    /**
     * Orders and waits for the end. Throws {@link TaskFailedError}, {@link PollTimeoutError} (the task goes on), and as
     * {@link create}.
     */
    async run(order, options = {}) {
        const key = checkedKey(order.idempotencyKey);
        const clock = new Clock(this.limits, options.signal);
        return marked({ idempotencyKey: key }, async () => {
            const reading = await this.http.ask(creating(order, key, clock.hold()), clock);
            return this.untilOver(reading, clock, options.onProgress);
        });
    }
    /** Each order with its task, or with what went wrong, as they end. */
    async *runMany(orders, options = {}) {
        const running = new Map();
        const call = options.signal === undefined ? {} : { signal: options.signal };
        for (const order of orders) {
            const name = Symbol();
            running.set(name, outcome(name, order, this.run(order, call)));
            if (running.size >= (options.concurrency ?? 5))
                yield await first(running);
        }
        while (running.size > 0)
            yield await first(running);
    }
    /**
     * Creates the task, or finds the one that this key made before, and does not wait for its end. What is temporary is
     * tried again under the same key, so nothing is paid twice. Throws {@link APIStatusError} with the service's words, or
     * {@link APIConnectionError}.
     */
    async create(order, options = {}) {
        const key = checkedKey(order.idempotencyKey);
        const clock = new Clock(this.limits, options.signal);
        return marked({ idempotencyKey: key }, async () => (await this.http.ask(creating(order, key, 0), clock)).task);
    }
    /** Reads a task once, as it is now; {@link NotFoundError} when this account has none of this id. */
    async retrieve(taskId, options = {}) {
        const clock = new Clock(this.limits, options.signal);
        return marked({ taskId }, async () => (await this.http.ask(reading(taskId, undefined, 0), clock)).task);
    }
    /**
     * Waits for the end of a task, or of the one of this id. The service holds the question until then; where it does not,
     * it is asked again as it says: first after 3 s, later up to 10 s apart. Throws as {@link run}.
     */
    async wait(task, options = {}) {
        const [taskId, key] = typeof task === "string" ? [task, undefined] : [task.id, task.idempotencyKey];
        const clock = new Clock(this.limits, options.signal);
        return marked({ taskId, idempotencyKey: key }, async () => {
            const read = await this.http.ask(reading(taskId, key, clock.hold()), clock);
            return this.untilOver(read, clock, options.onProgress);
        });
    }
    async download(task, pathOrOptions, more) {
        const path = typeof pathOrOptions === "string" ? pathOrOptions : undefined;
        const options = (typeof pathOrOptions === "string" ? more : pathOrOptions) ?? {};
        const mark = { taskId: task.id, idempotencyKey: task.idempotencyKey };
        const png = await marked(mark, () => this.fetchWhole(task, options));
        if (path === undefined)
            return png;
        await writeFile(`${path}.part`, png);
        await rename(`${path}.part`, path);
    }
    async untilOver(last, clock, onProgress) {
        let pause = PAUSES.firstPoll;
        for (let read = last;;) {
            const { task } = read;
            onProgress?.(task);
            if (task.status === "succeeded")
                return task;
            if (task.status === "failed")
                throw new TaskFailedError(task.id, task.failure);
            const asked = Math.max(Math.min(read.retryAfter ?? pause * 1.5, PAUSES.slowestPoll), PAUSES.firstPoll);
            pause = read.wasHeld ? 0 : asked;
            await clock.pause(task.id, pause);
            read = await this.http.ask(reading(task.id, task.idempotencyKey, clock.hold()), clock);
        }
    }
    async fetchWhole(task, options) {
        const clock = new Clock(this.limits, options.signal);
        const tries = new Tries(clock, DOWNLOAD_RETRIES);
        for (let current = task;;) {
            try {
                return await this.fetchOnce(current, clock, options.onProgress);
            }
            catch (error) {
                await tries.waitAfter(error);
            }
            const newer = await this.retrieve(task.id);
            if (newer.status === "succeeded")
                current = newer;
        }
    }
    /** Without the key: the host of the results must not see it. */
    async fetchOnce(task, clock, onBytes) {
        const bounds = { seconds: clock.limits.timeout - clock.waited, bytes: RESULT_BYTES_MAX };
        const [response, png] = await this.http.receive(task.result.url, {}, bounds, clock.signal, onBytes);
        if (response.status !== 200)
            throw refusal(response, new TextDecoder().decode(png));
        return check(png, task.result.sha256, response.headers.get("ETag"));
    }
}
function creating(order, idempotencyKey, held) {
    const body = JSON.stringify({
        image_url: order.imageUrl,
        scale: order.scale ?? 2,
        face_enhance: order.faceEnhance ?? false,
    });
    const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    return { path: "upscales", request: { method: "POST", headers, body }, expected: 202, held, idempotencyKey };
}
function reading(taskId, idempotencyKey, held) {
    return { path: `upscales/${encodeURIComponent(taskId)}`, request: {}, expected: 200, held, idempotencyKey };
}
function checkedKey(key) {
    if (key === undefined)
        return mintKey();
    if (/^[!-~]{8,128}$/.test(key))
        return key;
    throw new TypeError(`an idempotency key has 8 to 128 visible ASCII characters; this one has ${key.length}`);
}
/** What a call was about stands on every error of it. */
async function marked(mark, call) {
    try {
        return await call();
    }
    catch (error) {
        if (error instanceof UpscaleError) {
            if (mark.taskId !== undefined)
                error.taskId ??= mark.taskId;
            if (mark.idempotencyKey !== undefined)
                error.idempotencyKey ??= mark.idempotencyKey;
        }
        throw error;
    }
}
async function outcome(name, order, task) {
    try {
        return [name, order, await task];
    }
    catch (error) {
        if (error instanceof UpscaleError)
            return [name, order, error];
        throw error;
    }
}
async function first(running) {
    const [name, order, outcome] = await Promise.race(running.values());
    running.delete(name);
    return [order, outcome];
}
/** Against what the task said, else against the result's ETag where that is a SHA-256. */
function check(png, told, tag) {
    const expected = [told, tag?.replaceAll('"', "")].find((text) => text !== undefined && /^[0-9a-f]{64}$/.test(text));
    if (expected === undefined)
        throw new UnexpectedResponseError("the service sent no SHA-256 of the result");
    const found = createHash("sha256").update(png).digest("hex");
    if (found !== expected)
        throw new ChecksumError(`the result's SHA-256 is ${found}, not ${expected}`);
    return png;
}
