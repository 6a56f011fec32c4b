// SPDX-License-Identifier: Apache-2.0
// Reads rows again that events are about: a few at a time, each once however many events are about
// it, and the whole list where that is less.
const AT_ONCE_MAX = 3;
const ONE_BY_ONE_MAX = 12;
const LIST_MS_MIN = 1000;

export interface Source {
  one(key: string): Promise<void>;
  all(): Promise<void>;
}

interface State {
  dirty: Set<string>;
  whole: boolean;
  busy: boolean;
  listedAt: number;
}

export class Refresher<Name extends string = string> {
  private readonly states = new Map<Name, State>();

  constructor(private readonly sources: Readonly<Record<Name, Source>>,
              private readonly onRead: (name: Name, error: unknown) => void) {
    for (const name of Object.keys(sources) as Name[])
      this.states.set(name,
        { dirty: new Set(), whole: false, busy: false, listedAt: -LIST_MS_MIN });
  }

  mark(name: Name, key: string): void {
    const state = this.states.get(name)!;
    if (state.whole) return;
    state.dirty.add(key);
    void this.work(name, state);
  }

  everything(): void {
    for (const [name, state] of this.states) {
      if (name === "vfs") continue; // read with their PFs
      state.whole = true;
      void this.work(name, state);
    }
  }

  private async work(name: Name, state: State): Promise<void> {
    if (state.busy) return;
    state.busy = true;
    // Events that arrive together are looked at together.
    await Promise.resolve();
    while (state.whole || state.dirty.size > 0) {
      try {
        await this.once(this.sources[name], state);
        this.onRead(name, null);
      } catch (error) {
        this.onRead(name, error);
      }
    }
    state.busy = false;
  }

  private async once(source: Source, state: State): Promise<void> {
    if (state.whole || state.dirty.size > ONE_BY_ONE_MAX) {
      await until(state.listedAt + LIST_MS_MIN);
      state.whole = false;
      state.dirty.clear();
      state.listedAt = performance.now();
      return source.all();
    }
    const keys = [...state.dirty].slice(0, AT_ONCE_MAX);
    for (const key of keys) state.dirty.delete(key);
    await Promise.all(keys.map(key => source.one(key)));
  }
}

function until(at: number): Promise<void> {
  const left = at - performance.now();
  return left <= 0 ? Promise.resolve() : new Promise(resolve => setTimeout(resolve, left));
}
