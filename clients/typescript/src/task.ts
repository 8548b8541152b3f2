/** A task as one answer told it. An unknown status, or one without what belongs to it, is an error. */

import { inspect } from "node:util";

import { UnexpectedResponseError } from "./errors.js";

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
export class Result {
  constructor(
    /** Where the PNG is, for an hour; every reading of the task gives a new address. */
    readonly url: string,
    /** Of the PNG, in hexadecimal digits, where the service told it. */
    readonly sha256: string | undefined,
  ) {}

  [inspect.custom](): string {
    return `Result { url: '${this.url.split("?", 1)[0]}?…', sha256: '${this.sha256}' }`;
  }
}

/** Why there is no result. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  /** `pending` or `refunded`. */
  readonly refundStatus: string;
}

type Json = Readonly<Record<string, unknown>>;

/** What an answer says beside its body. */
export interface Told {
  readonly sha256: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly isReplay: boolean;
}

/** Reads a task's JSON; throws {@link UnexpectedResponseError} when it is none. */
export function readTask(body: string, { sha256, idempotencyKey, isReplay }: Told): Task {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
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

function object(value: unknown, name: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UnexpectedResponseError(`the answer has no ${name}`);
  }
  return value as Json;
}

function text(from: Json, name: string): string {
  const value = from[name];
  if (typeof value !== "string") throw new UnexpectedResponseError(`the answer has no ${name}`);
  return value;
}

function number(from: Json, name: string): number {
  const value = from[name];
  if (typeof value !== "number") throw new UnexpectedResponseError(`the answer has no ${name}`);
  return value;
}
