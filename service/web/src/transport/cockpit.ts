// SPDX-License-Identifier: Apache-2.0
// In Cockpit: HTTP over the daemon's unix socket, as the person who is signed in to Cockpit, or
// elevated, as root. Cockpit's own script sets window.cockpit; it is not in this bundle.
import { headOf } from "../model/head";
import type { Head } from "../model/head";
import { whyUnreached } from "../model/rights";
import { text } from "../text/en";
import { parsedBody, StreamRefused, Unreachable } from "./transport";
import type { Answer, StreamReader, Transport } from "./transport";

const SOCKET = "/run/vfmgr/vfmgr.sock";

interface CockpitFailure {
  problem?: string | null; // null: there was an answer, and not of status 2xx
  message?: string | null;
}
interface CockpitRequest {
  response(told: (status: number, headers: Record<string, string>) => void): CockpitRequest;
  stream(told: (part: string) => void): CockpitRequest;
  then(done: () => void, failed: (failure: CockpitFailure, body?: string) => void): unknown;
}
interface CockpitHttp {
  request(options: {
    method: string; path: string; body: string; headers: Readonly<Record<string, string>>;
  }): CockpitRequest;
}
interface CockpitChannel {
  addEventListener(name: "message", listener: (event: unknown, part: string) => void): void;
  addEventListener(name: "control",
                   listener: (event: unknown, said: { command: string }) => void): void;
  addEventListener(name: "close",
                   listener: (event: unknown, failure: CockpitFailure) => void): void;
  send(data: string): void;
  close(): void;
}
type Superuser = "require" | null;
export interface CockpitUser {
  id: number;
  name: string;
}
export interface Cockpit {
  http(path: string, options: { superuser: Superuser }): CockpitHttp;
  channel(options: { payload: "stream"; unix: string; superuser: Superuser }): CockpitChannel;
  user(): PromiseLike<CockpitUser>;
}
declare global {
  interface Window { cockpit?: Cockpit }
}

// Not elevated, the socket's group decides, and the audit names the person and not root.
export function cockpitTransport(cockpit: Cockpit, elevated: boolean): Transport {
  const superuser = elevated ? "require" : null;
  const http = cockpit.http(SOCKET, { superuser });
  return {
    async request(method, path, body, headers) {
      const json = body === undefined ? {} : { "Content-Type": "application/json" };
      return collected(http.request({
        method, path, headers: { ...json, ...headers },
        body: body === undefined ? "" : JSON.stringify(body),
      }), elevated);
    },
    // Over a channel of bytes: Cockpit's HTTP client of Debian 13 has a few threads for all
    // requests, and a stream that is closed keeps its thread until the daemon's next comment.
    async stream(path, reader) {
      const channel = cockpit.channel({ payload: "stream", unix: SOCKET, superuser });
      await streamed(channel, path, reader, elevated);
    },
  };
}

function collected(sent: CockpitRequest, elevated: boolean): Promise<Answer> {
  let status = 0;
  let headers = new Map<string, string>();
  let body = "";
  sent.response((code, fields) => {
    status = code;
    headers = new Map(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
  }).stream(part => { body += part; });
  return new Promise((resolve, reject) => {
    const answer = (): void => resolve({
      status, headers, body: parsedBody(body, headers.get("content-type") ?? ""),
    });
    sent.then(answer, (failure, rest = "") => {
      if (failure.problem != null || status === 0) return reject(unreachable(failure, elevated));
      body += rest; // Cockpit streams only what is 2xx
      answer();
    });
  });
}

// By HTTP/1.0, whose answer is its head and then nothing but the stream.
function streamed(channel: CockpitChannel, path: string, reader: StreamReader,
                  elevated: boolean): Promise<void> {
  let received = "";
  let head: Head | null = null;
  reader.signal.addEventListener("abort", () => channel.close(), { once: true });
  channel.addEventListener("message", (_, part) => {
    if (head?.status === 200) return reader.onBytes(part);
    received += part;
    head = headOf(received);
    if (head?.status !== 200) return;
    reader.onOpen();
    if (head.rest !== "") reader.onBytes(head.rest);
  });
  // The daemon's end of the stream: Debian 12's Cockpit leaves it to us to close ours.
  channel.addEventListener("control", (_, { command }) => {
    if (command === "done") channel.close();
  });
  const ended = new Promise<void>((resolve, reject) => {
    channel.addEventListener("close", (_, failure) => {
      if (head !== null && head.status !== 200) reject(new StreamRefused(answerOf(head)));
      else if (reader.signal.aborted || head !== null && failure.problem == null) resolve();
      else reject(unreachable(failure, elevated));
    });
  });
  const resume = reader.lastEventId === null ? "" : `Last-Event-ID: ${reader.lastEventId}\r\n`;
  channel.send(`GET ${path} HTTP/1.0\r\nAccept: text/event-stream\r\n${resume}\r\n`);
  return ended;
}

function answerOf({ status, headers, rest }: Head): Answer {
  return { status, headers, body: parsedBody(rest, headers.get("content-type") ?? "") };
}

function unreachable({ problem, message }: CockpitFailure, elevated: boolean): Unreachable {
  const why = whyUnreached(elevated, problem ?? "", message ?? "");
  const [code, status] = why === "no answer" ? ["unavailable", 503] as const
    : ["forbidden", 403] as const;
  return new Unreachable(message ?? problem ?? "", {
    type: `/v1/problems/${code}`, code, status, ...text.cockpit.unreached(why),
  });
}
