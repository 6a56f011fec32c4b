// SPDX-License-Identifier: Apache-2.0
// How the console reaches the daemon. Two implementations: fetch.ts where vfmgrd serves the page,
// cockpit.ts where Cockpit does.
import type { Problem } from "./types";

export interface Answer {
  status: number;
  headers: ReadonlyMap<string, string>; // names in lower case
  body: unknown; // of JSON; a string of other media; null without a body
}

export interface StreamReader {
  lastEventId: string | null; // resume after it; null: begin now
  signal: AbortSignal;
  onOpen(): void;
  onBytes(text: string): void;
}

export interface Transport {
  request(method: string, path: string, body?: unknown,
          headers?: Readonly<Record<string, string>>): Promise<Answer>;
  // Resolves when the stream ends; rejects with what ended it otherwise.
  stream(path: string, reader: StreamReader): Promise<void>;
}

export class Unreachable extends Error {
  override name = "Unreachable";
  // What a transport knows of the reason.
  constructor(message: string, readonly problem: Problem | null = null) {
    super(message);
  }
}

export class StreamRefused extends Error {
  override name = "StreamRefused";
  constructor(readonly answer: Answer) {
    super(`${answer.status}`);
  }
}

export function parsedBody(text: string, mediaType: string): unknown {
  if (text === "") return null;
  return /[/+]json\b/.test(mediaType) ? JSON.parse(text) : text;
}
