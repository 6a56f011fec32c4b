// SPDX-License-Identifier: Apache-2.0
// In Cockpit: HTTP over the daemon's unix socket, as the person who is signed in to Cockpit. Its
// own script sets window.cockpit; it is not in this bundle.
import { parsedBody, Unreachable } from "./transport";
import type { Answer, StreamReader, Transport } from "./transport";

const SOCKET = "/run/vfmgr/vfmgr.sock";

interface CockpitFailure {
  status?: number;
  problem?: string;
  message?: string;
}
interface CockpitRequest extends Promise<string> {
  response(told: (status: number, headers: Record<string, string>) => void): CockpitRequest;
  stream(told: (text: string) => void): CockpitRequest;
  close(): void;
}
interface CockpitHttp {
  request(options: {
    method: string; path: string; body: string; headers: Readonly<Record<string, string>>;
  }): CockpitRequest;
}
export interface Cockpit {
  http(path: string, options: { superuser: "try" | "require" | null }): CockpitHttp;
}
declare global {
  interface Window { cockpit?: Cockpit }
}

export function cockpitTransport(cockpit: Cockpit): Transport {
  // Not elevated: the socket's group decides, and the audit names the person and not root.
  const http = cockpit.http(SOCKET, { superuser: null });
  return {
    async request(method, path, body, headers) {
      const json = body === undefined ? {} : { "Content-Type": "application/json" };
      const sent = http.request({
        method, path, headers: { ...json, ...headers },
        body: body === undefined ? "" : JSON.stringify(body),
      });
      return collected(sent);
    },
    async stream(path, reader) {
      const headers = reader.lastEventId === null ? {} : { "Last-Event-ID": reader.lastEventId };
      await streamed(http.request({ method: "GET", path, body: "", headers }), reader);
    },
  };
}

async function collected(sent: CockpitRequest): Promise<Answer> {
  let status = 0;
  let headers = new Map<string, string>();
  let text = "";
  sent.response((code, fields) => {
    status = code;
    headers = new Map(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
  }).stream(part => { text += part; });
  // Cockpit rejects what is not 2xx, also after it gave the whole answer.
  await sent.catch((failure: CockpitFailure) => {
    if (status === 0) throw new Unreachable(failure.message ?? failure.problem ?? "");
  });
  return { status, headers, body: parsedBody(text, headers.get("content-type") ?? "") };
}

async function streamed(sent: CockpitRequest, reader: StreamReader): Promise<void> {
  reader.signal.addEventListener("abort", () => sent.close(), { once: true });
  sent.response(() => reader.onOpen()).stream(part => reader.onBytes(part));
  await sent.catch((failure: CockpitFailure) => {
    throw new Unreachable(failure.message ?? failure.problem ?? "");
  });
}
