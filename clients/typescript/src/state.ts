/** A task as one answer told it. An unknown status, or one without what belongs to it, is an error. */

import { Unexpected } from "./errors.js";

/** Where a task stands. */
export type State = Processing | Succeeded | Failed;

/** Waiting or being worked on. */
export interface Processing {
  readonly id: string;
  readonly status: "processing";
  /** In credits: 0.7. */
  readonly creditsReserved: number;
  readonly creditsCharged: number;
}

/** Done and charged. */
export interface Succeeded {
  readonly id: string;
  readonly status: "succeeded";
  /** Where the PNG is, for an hour; every reading gives a new address. */
  readonly resultUrl: string;
  /** Of the result, in hexadecimal digits, where the service told it. */
  readonly sha256: string | undefined;
  readonly creditsCharged: number;
}

/** Not done; the credits are back, or on their way. */
export interface Failed {
  readonly id: string;
  readonly status: "failed";
  readonly failure: Failure;
  readonly creditsCharged: number;
}

/** Why there is no result. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  /** `pending` or `refunded`. */
  readonly refundStatus: string;
}

type Json = Readonly<Record<string, unknown>>;

/** Reads a task's JSON; throws {@link Unexpected} when it is none. */
export function readState(body: string, sha256: string | undefined): State {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    throw new Unexpected("the answer is no JSON");
  }
  const task = object(parsed, "task");
  const id = text(task, "id");
  const usage = object(task["usage"], "usage");
  const creditsCharged = number(usage, "credits_charged");
  switch (task["status"]) {
    case "processing":
      return { id, status: "processing", creditsReserved: number(usage, "credits_reserved"), creditsCharged };
    case "succeeded": {
      const resultUrl = text(object(task["result"], "result"), "url");
      return { id, status: "succeeded", resultUrl, sha256, creditsCharged };
    }
    case "failed": {
      const error = object(task["error"], "error");
      const failure = {
        code: text(error, "code"),
        message: text(error, "message"),
        refundStatus: text(usage, "refund_status"),
      };
      return { id, status: "failed", failure, creditsCharged };
    }
    default:
      throw new Unexpected(`task ${id} has the unknown status ${JSON.stringify(task["status"])}`);
  }
}

function object(value: unknown, name: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Unexpected(`the answer has no ${name}`);
  }
  return value as Json;
}

function text(from: Json, name: string): string {
  const value = from[name];
  if (typeof value !== "string") throw new Unexpected(`the answer has no ${name}`);
  return value;
}

function number(from: Json, name: string): number {
  const value = from[name];
  if (typeof value !== "number") throw new Unexpected(`the answer has no ${name}`);
  return value;
}
