/** A task as one answer told it. An unknown status, or one without what belongs to it, is an error. */
import { inspect } from "node:util";
/** `status` says which one it is, and so what is there. */
export type Task = ProcessingTask | SucceededTask | FailedTask;
interface Common {
    /** Names the task for ever. */
    readonly id: string;
    /** In credits: 0.7 after success, else 0. */
    readonly creditsCharged: number;
    /** Under which this client ordered it. */
    readonly idempotencyKey: string | undefined;
    /** Whether an earlier request had made it: nothing more was reserved. */
    readonly isReplay: boolean;
}
/** Waiting or being worked on. */
export interface ProcessingTask extends Common {
    readonly status: "processing";
    /** In credits: 0.7. */
    readonly creditsReserved: number;
}
/** Done and charged. */
export interface SucceededTask extends Common {
    readonly status: "succeeded";
    readonly result: Result;
}
/** Not done; the credits are back, or on their way. */
export interface FailedTask extends Common {
    readonly status: "failed";
    readonly failure: Failure;
}
/** What a success left. Printed without the signature: anyone who has it can download the result. */
export declare class Result {
    /** Where the PNG is, for an hour; every reading of the task gives a new address. */
    readonly url: string;
    /** Of the PNG, in hexadecimal digits, where the service told it. */
    readonly sha256: string | undefined;
    constructor(
    /** Where the PNG is, for an hour; every reading of the task gives a new address. */
    url: string, 
    /** Of the PNG, in hexadecimal digits, where the service told it. */
    sha256: string | undefined);
    [inspect.custom](): string;
}
/** Why there is no result. */
export interface Failure {
    readonly code: string;
    readonly message: string;
    /** `pending` or `refunded`. */
    readonly refundStatus: string;
}
/** What an answer says beside its body. */
export interface Told {
    readonly sha256: string | undefined;
    readonly idempotencyKey: string | undefined;
    readonly isReplay: boolean;
}
/** Reads a task's JSON; throws {@link UnexpectedResponseError} when it is none. */
export declare function readTask(body: string, { sha256, idempotencyKey, isReplay }: Told): Task;
export {};
