// SPDX-License-Identifier: Apache-2.0
// The events that a page shows: live ones as they come, older ones when they are asked for. However
// many come, what follows them is drawn a few times a second.
import { useEffect, useMemo, useReducer } from "preact/hooks";
import { dropOld, emptyLog, EVENTS_MAX, withNewer, withOlder } from "../model/log";
import type { Log } from "../model/log";
import { problemIn } from "../transport/api";
import type { Api } from "../transport/api";
import type { Event, Operation, Problem } from "../transport/types";
import { nowAndThen } from "./frames";
import type { Store } from "./store";

const PAGE = 500;
const SHORTER = 8;
const OPERATIONS_PAGE = 200;

export class EventLog {
  log: Log = emptyLog;
  operations: ReadonlyMap<string, Operation> = new Map(); // those that pages of the list had
  reading = 0; // how many requests are under way or wait
  problem: Problem | null = null;
  held = false;
  waiting = 0; // events that came while it is held

  private incoming: Event[] = [];
  private operationsFrom: string | null | undefined; // null: all are read; undefined: none
  private worked = Promise.resolve();
  private lastDrawn = 0;
  private readonly settle = (): void => {
    this.lastDrawn = performance.now();
    if (this.reading === 0) {
      if (this.held) this.waiting += this.incoming.length;
      else this.log = withNewer(this.log, this.incoming);
      this.incoming = [];
    }
    this.draw();
  };

  constructor(private readonly api: Api, private readonly draw: () => void) {}

  add(event: Event): void {
    this.incoming.push(event);
    const dropped = dropOld(this.incoming);
    if (this.held) this.waiting += dropped;
    nowAndThen(this.settle, this.lastDrawn);
  }

  hold(): void {
    this.held = true;
    this.draw();
  }

  release(): void {
    this.held = false;
    this.waiting = 0;
    void this.catchUp();
  }

  // At first, and whenever some may have been missed.
  catchUp(): Promise<void> {
    return this.work(async () => {
      const place = await this.api.eventPlace();
      const top = this.log.events[0]?.number;
      if (top !== undefined && place - top <= EVENTS_MAX) {
        const page = place > top ? await this.api.eventsBetween(top, place) : null;
        if (page === null || !page.lost) {
          this.log = withNewer(this.log, page?.events ?? []);
          return;
        }
      }
      this.log = emptyLog;
      await this.readBefore(place + 1);
    });
  }

  older(): Promise<void> {
    return this.work(() => {
      const oldest = this.log.events.at(-1);
      return oldest === undefined ? Promise.resolve() : this.readBefore(oldest.number);
    });
  }

  // Numbers have gaps. Of a page that reaches too far back the answer is only that it is lost, so
  // shorter ones find what is left.
  private async readBefore(before: number): Promise<void> {
    const had = this.log.events.length;
    let from = before;
    for (let size = PAGE; from > 1;) {
      const after = Math.max(0, from - 1 - size);
      const page = await this.api.eventsBetween(after, from - 1);
      if (page.lost && size === 1) {
        this.log = { ...this.log, complete: true };
        break;
      }
      if (page.lost) {
        size = Math.max(1, Math.floor(size / SHORTER));
        continue;
      }
      from = after + 1;
      this.log = withOlder(this.log, page.events, after === 0);
      if (from <= before - PAGE && this.log.events.length > had) break;
    }
    if (before <= 1) this.log = { ...this.log, complete: true };
    await this.readOperations();
  }

  // As far back as the events go.
  private async readOperations(): Promise<void> {
    const until = Date.parse(this.log.events.at(-1)?.at ?? "");
    while (this.operationsFrom !== null) {
      const place = this.operationsFrom === undefined ? {} : { cursor: this.operationsFrom };
      const page: { items: Operation[]; next: string | null } =
        await this.api.get("/v1/operations", {}, { limit: OPERATIONS_PAGE, ...place });
      this.operations = new Map([...this.operations,
        ...page.items.map(operation => [operation.id, operation] as const)]);
      this.operationsFrom = page.next;
      const oldest = page.items.at(-1);
      if (oldest !== undefined && Date.parse(oldest.created_at) < until) return;
    }
  }

  // One after the other: each begins where the log ends.
  private work(task: () => Promise<void>): Promise<void> {
    ++this.reading;
    this.problem = null;
    this.draw();
    return this.worked = this.worked.then(task)
      .catch((error: unknown) => { this.problem = problemIn(error); })
      .finally(() => {
        --this.reading;
        this.settle();
      });
  }
}

export function useEventLog(api: Api, store: Store, live: boolean): EventLog {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const log = useMemo(() => new EventLog(api, () => again(undefined)), [api]);
  useEffect(() => store.onEvent(event => log.add(event)), [log]);
  // Without a stream there is still what the host keeps.
  useEffect(() => { if (live || log.log === emptyLog) void log.catchUp(); }, [log, live]);
  return log;
}
