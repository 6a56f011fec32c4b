// SPDX-License-Identifier: Apache-2.0
// One value that few components follow, so that what is around them is not drawn again.
import { useLayoutEffect, useState } from "preact/hooks";
import { thisFrame } from "./frames";

export class Signal<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private now: T) {}

  get value(): T {
    return this.now;
  }

  set(value: T): void {
    if (value === this.now) return;
    this.now = value;
    for (const listener of this.listeners) thisFrame(listener);
  }

  on(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

// Draws the component again when what it takes of the value has changed.
export function useSignal<T, U>(signal: Signal<T>, take: (value: T) => U): U {
  const [taken, setTaken] = useState(() => take(signal.value));
  useLayoutEffect(() => {
    const changed = (): void => setTaken(() => take(signal.value));
    changed();
    return signal.on(changed);
  }, [signal]);
  return taken;
}
