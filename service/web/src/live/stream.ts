// SPDX-License-Identifier: Apache-2.0
// One event stream for all tabs of a principal: the tab that holds the lock reads it, the others
// hear it over a channel. A browser opens six connections to a host, so eight tabs can't have one
// each.
import { frameParser } from "../model/sse";
import type { Frame } from "../model/sse";
import { StreamRefused } from "../transport/transport";
import type { Transport } from "../transport/transport";

// Since when nothing is heard; null: live.
export type Liveness = { live: boolean; since: number };

export interface Listener {
  onFrame(frame: Frame): void;
  onLiveness(liveness: Liveness): void;
  onRefused(status: number): void; // of the request for the stream
}

type Message =
  | { kind: "who" }
  | { kind: "frames"; frames: Frame[] }
  | { kind: "liveness"; liveness: Liveness; place: string | null };

// The daemon sends a comment after 15 seconds of silence.
const SILENCE_MS_MAX = 40_000;
const RETRY_MS = [500, 1000, 2000, 5000, 10_000];

export function follow(transport: Transport, who: string, listener: Listener): () => void {
  const shared = new BroadcastChannel(`vfmgr-events ${who}`);
  const stopped = new AbortController();
  const state = { place: null as string | null, leads: false, liveness: notLive() };
  const take = (frames: Frame[]): void => {
    for (const frame of frames) {
      if (frame.id !== null) state.place = frame.id;
      listener.onFrame(frame);
    }
  };
  const tell = (message: Message): void => shared.postMessage(message);
  const change = (liveness: Liveness): void => {
    state.liveness = liveness;
    listener.onLiveness(liveness);
    if (state.leads) tell({ kind: "liveness", liveness, place: state.place });
  };
  shared.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === "who") {
      if (state.leads) tell({ kind: "liveness", liveness: state.liveness, place: state.place });
    } else if (data.kind === "frames") take(data.frames);
    else {
      // A follower that has no place yet begins where the leader is.
      if (state.place === null && data.place !== null)
        take([{ event: "current", id: data.place, data: "" }]);
      change(data.liveness);
    }
  };
  const lead = async (): Promise<void> => {
    state.leads = true;
    await readForEver(transport, stopped.signal, () => state.place, {
      onFrames: frames => {
        tell({ kind: "frames", frames });
        take(frames);
      },
      onLiveness: change,
      onRefused: status => listener.onRefused(status),
    });
  };
  void hold(`vfmgr-events ${who}`, stopped.signal, lead);
  tell({ kind: "who" });
  return () => {
    stopped.abort();
    shared.close();
  };
}

function notLive(): Liveness {
  return { live: false, since: Date.now() };
}

// Pages that are not served over TLS or from the machine itself have no locks: each tab leads.
async function hold(name: string, signal: AbortSignal, lead: () => Promise<void>): Promise<void> {
  if (navigator.locks === undefined) return lead();
  await navigator.locks.request(name, { signal }, lead).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

interface Reading {
  onFrames(frames: Frame[]): void;
  onLiveness(liveness: Liveness): void;
  onRefused(status: number): void;
}

async function readForEver(transport: Transport, stopped: AbortSignal,
                           place: () => string | null, reading: Reading): Promise<void> {
  for (let failures = 0; !stopped.aborted; ++failures) {
    await readOnce(transport, stopped, place(), reading, () => { failures = 0; });
    if (stopped.aborted) return;
    reading.onLiveness(notLive());
    await retryAt(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0, stopped);
  }
}

async function readOnce(transport: Transport, stopped: AbortSignal, place: string | null,
                        reading: Reading, onOpen: () => void): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  let timer = setTimeout(end, SILENCE_MS_MAX);
  stopped.addEventListener("abort", end);
  const parse = frameParser();
  try {
    await transport.stream("/v1/events", {
      lastEventId: place,
      signal: ended.signal,
      onOpen: () => {
        onOpen();
        reading.onLiveness({ live: true, since: Date.now() });
      },
      onBytes: part => {
        clearTimeout(timer);
        timer = setTimeout(end, SILENCE_MS_MAX);
        const frames = parse(part);
        if (frames.length > 0) reading.onFrames(frames);
      },
    });
  } catch (error) {
    if (error instanceof StreamRefused) reading.onRefused(error.answer.status);
  } finally {
    clearTimeout(timer);
    stopped.removeEventListener("abort", end);
  }
}

// Earlier when the machine finds its network again.
function retryAt(milliseconds: number, stopped: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done);
    stopped.addEventListener("abort", done, { once: true });
  });
}
