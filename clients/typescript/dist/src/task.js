/** A task as one answer told it. An unknown status, or one without what belongs to it, is an error. */
import { inspect } from "node:util";
import { UnexpectedResponseError } from "./errors.js";
/** What a success left. Printed without the signature: anyone who has it can download the result. */
export class Result {
    url;
    sha256;
    constructor(
    /** Where the PNG is, for an hour; every reading of the task gives a new address. */
    url, 
    /** Of the PNG, in hexadecimal digits, where the service told it. */
    sha256) {
        this.url = url;
        this.sha256 = sha256;
    }
    [inspect.custom]() {
        return `Result { url: '${this.url.split("?", 1)[0]}?…', sha256: '${this.sha256}' }`;
    }
}
/** Reads a task's JSON; throws {@link UnexpectedResponseError} when it is none. */
export function readTask(body, { sha256, idempotencyKey, isReplay }) {
    let parsed;
    try {
        parsed = JSON.parse(body);
    }
    catch {
        throw new UnexpectedResponseError("the answer is no JSON");
    }
    const task = object(parsed, "task");
    const id = text(task, "id");
    const usage = object(task["usage"], "usage");
    const common = { id, creditsCharged: number(usage, "credits_charged"), idempotencyKey, isReplay };
    switch (task["status"]) {
        case "processing":
            return { ...common, status: "processing", creditsReserved: number(usage, "credits_reserved") };
        case "succeeded": {
            const url = text(object(task["result"], "result"), "url");
            return { ...common, status: "succeeded", result: new Result(url, sha256) };
        }
        case "failed": {
            const error = object(task["error"], "error");
            const failure = {
                code: text(error, "code"),
                message: text(error, "message"),
                refundStatus: text(usage, "refund_status"),
            };
            return { ...common, status: "failed", failure };
        }
        default:
            throw new UnexpectedResponseError(`task ${id} has the unknown status ${JSON.stringify(task["status"])}`);
    }
}
function object(value, name) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new UnexpectedResponseError(`the answer has no ${name}`);
    }
    return value;
}
function text(from, name) {
    const value = from[name];
    if (typeof value !== "string")
        throw new UnexpectedResponseError(`the answer has no ${name}`);
    return value;
}
function number(from, name) {
    const value = from[name];
    if (typeof value !== "number")
        throw new UnexpectedResponseError(`the answer has no ${name}`);
    return value;
}
