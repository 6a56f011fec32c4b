// SPDX-License-Identifier: Apache-2.0
// Who is signed in. The session's token is kept in this tab and passed to new tabs of the browser,
// which end with it: nothing of it is written to disk.
import { Unreachable } from "./transport";
import type { Transport } from "./transport";
import type { NewSession, Problem, Role } from "./types";

export interface Session {
  who: string; // as the audit names the principal; "": the transport itself identifies the person
  role: Role | null;
  tenant: string | null;
  expiresAt: string | null;
  token: string | null;
}

const KEY = "vfmgr-session";
const CHANNEL = "vfmgr-sessions";
const TAB_LOCK = "vfmgr-tab";
const ANSWER_MS_MAX = 500;

export const itself: Session = {
  who: "", role: null, tenant: null, expiresAt: null, token: null,
};

export function kept(): Session | null {
  const text = sessionStorage.getItem(KEY);
  if (text === null) return null;
  const session = JSON.parse(text) as Session;
  return isOver(session) ? null : session;
}

// Has a shared lock while this tab has a session, which tells a new tab that there is somebody to
// answer it.
let lock: AbortController | null = null;

export function keep(session: Session): void {
  sessionStorage.setItem(KEY, JSON.stringify(session));
  lock ??= locked();
}

export function forget(): void {
  sessionStorage.removeItem(KEY);
  lock?.abort();
  lock = null;
}

function locked(): AbortController {
  const ended = new AbortController();
  const end = new Promise<void>(resolve => ended.signal.addEventListener("abort", () => resolve()));
  void navigator.locks?.request(TAB_LOCK, { mode: "shared", signal: ended.signal }, () => end)
    .catch(() => undefined); // ended before it was granted
  return ended;
}

function isOver(session: Session): boolean {
  return session.expiresAt !== null && Date.parse(session.expiresAt) <= Date.now();
}

// Answers other tabs for as long as this one is open. Returns what tells the others that it signed
// out.
export function answerOtherTabs(onSignedOut: () => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    const session = kept();
    if (data === "who" && session !== null) channel.postMessage({ session });
    if (data === "signed out") onSignedOut();
  };
  return () => channel.postMessage("signed out");
}

// Null: no tab has answered so far. One that is busy, as when it draws a large host, may answer
// `late`.
export async function askOtherTabs(late: (session: Session) => void): Promise<Session | null> {
  const { held = [] } = await navigator.locks?.query() ?? {};
  if (!held.some(lock => lock.name === TAB_LOCK)) return null;
  const channel = new BroadcastChannel(CHANNEL);
  return new Promise(resolve => {
    const timer = setTimeout(() => {
      answered = late;
      resolve(null);
    }, ANSWER_MS_MAX);
    let answered = (session: Session): void => {
      clearTimeout(timer);
      resolve(session);
    };
    channel.onmessage = ({ data }: MessageEvent<{ session?: Session }>) => {
      if (data.session === undefined) return;
      channel.close();
      answered(data.session);
    };
    channel.postMessage("who");
  });
}

export type SignedIn = { session: Session } | { problem: Problem };

// Without a secret the browser's client certificate decides, or the unix socket that the page was
// reached over, which has users and no sessions.
export async function signIn(over: (token: () => string | null) => Transport,
                             secret: string | null): Promise<SignedIn> {
  const transport = over(() => secret);
  const answer = await transport.request("POST", "/v1/sessions");
  if (answer.status === 201) return { session: sessionOf(answer.body) };
  if (answer.status === 403 && secret === null) {
    const about = await transport.request("GET", "/v1");
    if (about.status === 200) return { session: itself };
  }
  if (typeof answer.body !== "object" || answer.body === null)
    throw new Unreachable(`${answer.status}`);
  return { problem: answer.body as Problem };
}

function sessionOf(body: unknown): Session {
  const begun = body as NewSession;
  return {
    who: begun.who, role: begun.role, tenant: begun.tenant,
    expiresAt: begun.expires_at, token: begun.token,
  };
}
