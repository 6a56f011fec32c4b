// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";

// State that a reload and the browser's back button bring again: it is kept with the entry of the
// browser's history. `name` is unique in the page; the state can be written as JSON.
export function useKept<T>(name: string, first: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => entry()[name] as T | undefined ?? first);
  return [value, next => {
    history.replaceState({ ...entry(), [name]: next }, "");
    setValue(next);
  }];
}

function entry(): Record<string, unknown> {
  const state: unknown = history.state;
  return typeof state === "object" && state !== null ? state as Record<string, unknown> : {};
}
