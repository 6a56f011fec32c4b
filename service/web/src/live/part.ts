// SPDX-License-Identifier: Apache-2.0
// A list over all hosts of a fleet, kept as rows. It is read while somebody looks at it: as a whole
// at first, then of the hosts that events are about, a few at a time.
import { problemIn } from "../transport/api";
import type { Stale } from "../transport/fleet_types";
import type { Problem } from "../transport/types";
import { Rows } from "./rows";

const HOSTS_AT_ONCE = 4;
const ROUND_MS_MIN = 250; // what a host is read again for comes in bursts
const HOSTS_ONE_BY_ONE_MAX = 100; // of more the whole list is less to ask for
const WHOLE_MS_MIN = 10_000;

export interface PartSource<Row> {
  all(take: (rows: Row[]) => void): Promise<readonly Stale[]>;
  of(host: string, take: (rows: Row[]) => void): Promise<readonly Stale[]>;
}

export interface PartStatus {
  loaded: boolean;
  problem: Problem | null;
  stale: ReadonlyMap<string, Stale>; // by host
}

// Of whatever rows.
export interface AnyPart {
  readonly status: PartStatus;
  follow(): () => void;
  mark(host: string): void;
  everything(): void;
}

export class Part<Row extends object> implements AnyPart {
  readonly rows: Rows<Row>;
  status: PartStatus = { loaded: false, problem: null, stale: new Map() };

  private readonly dirty = new Set<string>();
  private whole = true;
  private users = 0;
  private busy = false;
  private wholeAt = -WHOLE_MS_MIN;

  constructor(private readonly source: PartSource<Row>, keyOf: (row: Row) => string,
              hostOf: (row: Row) => string,
              private readonly changed: () => void) {
    this.rows = new Rows(keyOf, hostOf);
  }

  // While a page shows it.
  follow(): () => void {
    ++this.users;
    void this.work();
    return () => { --this.users; };
  }

  mark(host: string): void {
    if (!this.whole) this.dirty.add(host);
    void this.work();
  }

  everything(): void {
    this.whole = true;
    this.dirty.clear();
    void this.work();
  }

  private async work(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    // Events that arrive together are looked at together.
    await Promise.resolve();
    while (this.users > 0 && (this.whole || this.dirty.size > 0)) {
      try {
        if (this.whole) await this.readAll();
        else if (this.dirty.size <= HOSTS_ONE_BY_ONE_MAX) await this.readSome();
        else {
          await until(this.wholeAt + WHOLE_MS_MIN);
          await this.readAll();
        }
        if (!this.status.loaded || this.status.problem !== null)
          this.tell({ loaded: true, problem: null });
      } catch (error) {
        this.tell({ loaded: true, problem: problemIn(error) });
      }
    }
    this.busy = false;
  }

  private async readAll(): Promise<void> {
    this.whole = false;
    this.dirty.clear();
    this.wholeAt = performance.now();
    const found: Row[] = [];
    const stale = await this.source.all(rows => { found.push(...rows); });
    this.rows.replace(found);
    if (stale.length > 0 || this.status.stale.size > 0)
      this.tell({ stale: new Map(stale.map(one => [one.host, one])) });
  }

  private async readSome(): Promise<void> {
    const until_ = performance.now() + ROUND_MS_MIN;
    const hosts = [...this.dirty].slice(0, HOSTS_AT_ONCE);
    for (const host of hosts) this.dirty.delete(host);
    await Promise.all(hosts.map(host => this.readHost(host)));
    await until(until_);
  }

  private async readHost(host: string): Promise<void> {
    const found: Row[] = [];
    const stale = await this.source.of(host, rows => { found.push(...rows); });
    const keys = new Set(this.rows.groupKeys(host));
    this.rows.replace(found, key => keys.has(key));
    const before = this.status.stale;
    if (!before.has(host) && stale.length === 0) return;
    const now = new Map(before);
    now.delete(host);
    for (const one of stale) now.set(one.host, one);
    this.tell({ stale: now });
  }

  private tell(part: Partial<PartStatus>): void {
    this.status = { ...this.status, ...part };
    this.changed();
  }
}

function until(at: number): Promise<void> {
  const left = at - performance.now();
  return left <= 0 ? Promise.resolve() : new Promise(resolve => setTimeout(resolve, left));
}
