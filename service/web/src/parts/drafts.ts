// SPDX-License-Identifier: Apache-2.0
// Half-written documents, which survive a reload of this tab. Signing out forgets them, and nobody
// but who wrote one gets it back.
const PREFIX = "vfmgr-draft ";

export interface Draft {
  who: string;
  at: string; // when it was last written
  text: string;
  base: string; // what it was begun from; "": from nothing
  etag: string; // of the base
}

export function keepDraft(name: string, draft: Draft): void {
  sessionStorage.setItem(PREFIX + name, JSON.stringify(draft));
}

export function keptDraft(name: string, who: string): Draft | null {
  const text = sessionStorage.getItem(PREFIX + name);
  if (text === null) return null;
  const draft = JSON.parse(text) as Draft;
  return draft.who === who ? draft : null;
}

export function forgetDraft(name: string): void {
  sessionStorage.removeItem(PREFIX + name);
}

export function forgetDrafts(): void {
  for (const name of Object.keys(sessionStorage))
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
}
