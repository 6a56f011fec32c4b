// SPDX-License-Identifier: Apache-2.0
// Typed calls of the API. A path or a member that api/openapi.yaml does not have does not compile.
import { path as pathOf } from "../model/paths";
import { text } from "../text/en";
import { eventPlace, eventsBetween } from "./events";
import type { EventPage } from "./events";
import { StreamRefused, Unreachable } from "./transport";
import type { Answer, Transport } from "./transport";
import type {
  Body, Done, DryRun, Input, Item, Method, Operation, PathOf, Problem, Readiness,
} from "./types";

export type Values = Readonly<Record<string, string | number>>;
export type Query = Readonly<Record<string, string | number | boolean>>;

export class Refused extends Error {
  override name = "Refused";
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

// A body with the ETag that a write of it names in If-Match.
export interface Revision<T> {
  body: T;
  etag: string;
}

// What a write began: an operation to follow, or an answer at once.
export type Begun<T> = { operation: Operation } | { done: T };

// The key makes a request that is sent again begin nothing twice.
export interface Write<P extends PathOf<M>, M extends Method> {
  method: M;
  path: P;
  values?: Values;
  query?: Query;
  body?: Input<P, M>;
  ifMatch?: string;
}

export interface Api {
  get<P extends PathOf<"get">>(path: P, values?: Values, query?: Query):
    Promise<Body<P, "get", 200>>;
  getRevision<P extends PathOf<"get">>(path: P, values?: Values):
    Promise<Revision<Body<P, "get", 200>>>;
  // Not ready is an answer and no failure.
  readiness(): Promise<Readiness>;
  // All pages of a list.
  list<P extends PathOf<"get">>(path: P, values?: Values, query?: Query): Promise<Item<P>[]>;
  // The plan of a write, which changes nothing.
  plan<P extends PathOf<M>, M extends Method>(write: Write<P, M>): Promise<DryRun>;
  send<P extends PathOf<M>, M extends Method>(write: Write<P, M>):
    Promise<Begun<Done<P, M>>>;
  // The number of the latest event; and events that are kept, by their numbers.
  eventPlace(): Promise<number>;
  eventsBetween(after: number, last: number): Promise<EventPage>;
}

export type Call = (method: string, path: string, body?: unknown,
                    headers?: Record<string, string>) => Promise<Answer>;

// Rejects with a Refused, whatever the reason.
export function callsOver(transport: Transport, onUnauthorized: () => void): Call {
  return async (method, path, body, headers) => {
    const answer = await transport.request(method, path, body, headers).catch(unreachable);
    if (answer.status === 401) onUnauthorized();
    if (answer.status >= 400) throw new Refused(problemOf(answer));
    return answer;
  };
}

export function apiOver(transport: Transport, onUnauthorized: () => void): Api {
  const call = callsOver(transport, onUnauthorized);
  const written = <P extends PathOf<M>, M extends Method>(write: Write<P, M>, query: Query) => {
    const headers: Record<string, string> = {};
    if (write.ifMatch !== undefined) headers["If-Match"] = write.ifMatch;
    if (query["dry_run"] !== true) headers["Idempotency-Key"] = randomKey();
    const path = pathOf(write.path, write.values ?? {}, { ...write.query, ...query });
    return call(write.method.toUpperCase(), path, write.body, headers);
  };
  // The answers' types are the document's, which the contract tests hold the daemon to.
  return {
    async get<P extends PathOf<"get">>(path: P, values: Values = {}, query: Query = {}) {
      const answer = await call("GET", pathOf(path, values, query));
      return answer.body as Body<P, "get", 200>;
    },
    async getRevision<P extends PathOf<"get">>(path: P, values: Values = {}) {
      const answer = await call("GET", pathOf(path, values));
      return {
        body: answer.body as Body<P, "get", 200>, etag: answer.headers.get("etag") ?? "",
      };
    },
    async readiness() {
      const answer = await transport.request("GET", "/readyz").catch(unreachable);
      if (isReadiness(answer.body)) return answer.body;
      throw new Refused(problemOf(answer));
    },
    async list<P extends PathOf<"get">>(path: P, values: Values = {}, query: Query = {}) {
      const items: Item<P>[] = [];
      let cursor: string | null = null;
      do {
        const place: Query = cursor === null ? {} : { cursor };
        const answer = await call("GET", pathOf(path, values, { ...query, ...place }));
        const page = answer.body as { items: Item<P>[]; next: string | null };
        items.push(...page.items);
        cursor = page.next;
      } while (cursor !== null);
      return items;
    },
    async plan(write) {
      const answer = await written(write, { dry_run: true });
      return answer.body as DryRun;
    },
    async send<P extends PathOf<M>, M extends Method>(write: Write<P, M>) {
      const answer = await written(write, {});
      return answer.status === 202 ? { operation: answer.body as Operation }
        : { done: answer.body as Done<P, M> };
    },
    eventPlace: () => eventPlace(transport).catch(unreachable),
    eventsBetween: (after, last) => eventsBetween(transport, after, last).catch(unreachable),
  };
}

function isReadiness(body: unknown): body is Readiness {
  return typeof body === "object" && body !== null && "not_ready" in body;
}

export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
}

function unreachable(error: unknown): never {
  if (error instanceof StreamRefused) throw new Refused(problemOf(error.answer));
  if (!(error instanceof Unreachable)) throw error;
  throw new Refused(error.problem
    ?? ownProblem(text.problem.unreachable, text.problem.unreachableRemedy));
}

function ownProblem(detail: string, remedy: string): Problem {
  return {
    type: "/v1/problems/unavailable", code: "unavailable", status: 503,
    title: text.problem.unreachableTitle, detail, remedy,
  };
}

function problemOf(answer: Answer): Problem {
  const body = answer.body;
  if (typeof body === "object" && body !== null && "detail" in body && "title" in body)
    return body as Problem;
  return ownProblem(text.problem.notUnderstood(answer.status), text.problem.notUnderstoodRemedy);
}

// Any failure as a problem to show.
export function problemIn(error: unknown): Problem {
  if (error instanceof Refused) return error.problem;
  return ownProblem(text.problem.inPage(String(error)), text.problem.inPageRemedy);
}
