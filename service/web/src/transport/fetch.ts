// SPDX-License-Identifier: Apache-2.0
// The page's own origin is the daemon. EventSource can't send a bearer token, so the stream is read
// from a fetch as well.
import { parsedBody, StreamRefused, Unreachable } from "./transport";
import type { Answer, StreamReader, Transport } from "./transport";

export function fetchTransport(token: () => string | null): Transport {
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    const headers = new Headers(init.headers);
    const bearer = token();
    if (bearer !== null) headers.set("Authorization", `Bearer ${bearer}`);
    try {
      return await fetch(path, { ...init, headers, redirect: "error", credentials: "same-origin" });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Unreachable(String(error));
    }
  };
  return {
    async request(method, path, body, headers) {
      const json = body === undefined ? {} : { "Content-Type": "application/json" };
      const response = await send(path, {
        method,
        headers: { ...json, ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        cache: "no-store",
      });
      return answerOf(response);
    },
    async stream(path, reader) {
      const headers: Record<string, string> =
        reader.lastEventId === null ? {} : { "Last-Event-ID": reader.lastEventId };
      const response = await send(path, {
        headers: { ...headers, Accept: "text/event-stream" },
        signal: reader.signal,
        cache: "no-store",
      });
      if (!response.ok || response.body === null) throw new StreamRefused(await answerOf(response));
      await readAll(response.body, reader);
    },
  };
}

async function readAll(body: ReadableStream<Uint8Array>, reader: StreamReader): Promise<void> {
  reader.onOpen();
  const decoder = new TextDecoder();
  const parts = body.getReader();
  for (;;) {
    const { done, value } = await parts.read();
    if (done) return;
    reader.onBytes(decoder.decode(value, { stream: true }));
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return {
    status: response.status,
    headers: new Map(response.headers),
    body: parsedBody(text, response.headers.get("Content-Type") ?? ""),
  };
}
