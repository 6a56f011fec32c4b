// SPDX-License-Identifier: Apache-2.0
// A list that the page follows. A listener hears of one row, of a group of rows, of the keys, or of
// anything; a row that arrives again as it was changes nothing.
import { isSame } from "../model/same";
import { nowAndThen, thisFrame } from "./frames";

type Listener = () => void;
type Listeners = Map<string, Set<Listener>>;

export class Rows<T> {
  private readonly rows = new Map<string, T>();
  private readonly groups = new Map<string, Set<string>>();
  private readonly ofRow: Listeners = new Map();
  private readonly ofGroup: Listeners = new Map();
  private readonly ofKeys = new Set<Listener>();
  private readonly ofAny = new Map<Listener, { last: number; run: Listener }>();
  private sorted: T[] | null = null;
  private sortedKeys: string[] | null = null;
  private readonly sortedGroups = new Map<string, string[]>();

  constructor(readonly keyOf: (item: T) => string,
              private readonly groupOf: (item: T) => string = () => "") {}

  get(key: string): T | undefined {
    return this.rows.get(key);
  }

  all(): readonly T[] {
    return this.sorted ??= this.keys().map(key => this.rows.get(key)!);
  }

  keys(): readonly string[] {
    return this.sortedKeys ??= [...this.rows.keys()].sort(byName);
  }

  group(name: string): T[] {
    return this.groupKeys(name).map(key => this.rows.get(key)!);
  }

  groupKeys(name: string): readonly string[] {
    let keys = this.sortedGroups.get(name);
    if (keys === undefined) {
      keys = [...this.groups.get(name) ?? []].sort(byName);
      this.sortedGroups.set(name, keys);
    }
    return keys;
  }

  put(item: T): void {
    const key = this.keyOf(item);
    const before = this.rows.get(key);
    if (before !== undefined && isSame(before, item)) return;
    this.rows.set(key, item);
    const group = this.groupOf(item);
    if (before !== undefined && this.groupOf(before) !== group) this.leaveGroup(key, before);
    const members = this.groups.get(group) ?? new Set();
    if (!members.has(key)) this.sortedGroups.delete(group);
    this.groups.set(group, members.add(key));
    this.changed(key, group, before === undefined);
  }

  remove(key: string): void {
    const before = this.rows.get(key);
    if (before === undefined) return;
    this.rows.delete(key);
    this.leaveGroup(key, before);
    this.changed(key, this.groupOf(before), true);
  }

  // Takes a whole list: what it lacks is gone.
  replace(items: readonly T[], within: (key: string) => boolean = () => true): void {
    const present = new Set(items.map(this.keyOf));
    for (const key of this.rows.keys()) if (within(key) && !present.has(key)) this.remove(key);
    for (const item of items) this.put(item);
  }

  onRow(key: string, listener: Listener): Listener {
    return added(this.ofRow, key, listener);
  }

  onGroup(name: string, listener: Listener): Listener {
    return added(this.ofGroup, name, listener);
  }

  onKeys(listener: Listener): Listener {
    this.ofKeys.add(listener);
    return () => this.ofKeys.delete(listener);
  }

  onAny(listener: Listener): Listener {
    const entry = { last: 0, run: () => {
      entry.last = performance.now();
      listener();
    } };
    this.ofAny.set(listener, entry);
    return () => this.ofAny.delete(listener);
  }

  private leaveGroup(key: string, item: T): void {
    const group = this.groupOf(item);
    this.groups.get(group)?.delete(key);
    this.sortedGroups.delete(group);
    for (const listener of this.ofGroup.get(group) ?? []) thisFrame(listener);
  }

  private changed(key: string, group: string, keysToo: boolean): void {
    this.sorted = null;
    for (const listener of this.ofRow.get(key) ?? []) thisFrame(listener);
    for (const listener of this.ofGroup.get(group) ?? []) thisFrame(listener);
    for (const { last, run } of this.ofAny.values()) nowAndThen(run, last);
    if (!keysToo) return;
    this.sortedKeys = null;
    for (const listener of this.ofKeys) thisFrame(listener);
  }
}

const names = new Intl.Collator("en", { numeric: true });
const byName = (one: string, other: string): number => names.compare(one, other);

function added(listeners: Listeners, key: string, listener: Listener): Listener {
  const those = listeners.get(key) ?? new Set();
  listeners.set(key, those.add(listener));
  return () => {
    those.delete(listener);
    if (those.size === 0) listeners.delete(key);
  };
}
