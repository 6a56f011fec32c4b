// SPDX-License-Identifier: Apache-2.0
// What a page has of the events that a host keeps. Timers end and frames come when a test says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLog } from "../../../service/web/src/live/events";
import { dropOld, EVENTS_MAX } from "../../../service/web/src/model/log";
import type { Api } from "../../../service/web/src/transport/api";
import type { Event } from "../../../service/web/src/transport/types";
import { event, operation } from "./bodies";

let due: (() => void) | null = null;
globalThis.setTimeout = ((task: () => void) => { due = task; }) as typeof setTimeout;
let frame: FrameRequestCallback | null = null;
globalThis.requestAnimationFrame = callback => {
  frame = callback;
  return 1;
};
function drawFrame(): void {
  const ended = due;
  due = null;
  ended?.();
  const ready = frame;
  frame = null;
  ready?.(performance.now());
}

// A host whose events up to `pruned` are gone; each tenth number is a gap.
class Host {
  last: number;
  questions = 0;
  constructor(private readonly pruned: number, last: number) {
    this.last = last;
  }
  one(number: number): Event {
    return event({ number, at: new Date(number * 1000).toISOString() });
  }
  all(after: number, last: number): Event[] {
    return Array.from({ length: last - after }, (_, at) => after + 1 + at)
      .filter(number => number % 10 !== 0).map(number => this.one(number));
  }
  readonly api = {
    eventPlace: () => Promise.resolve(this.last),
    eventsBetween: (after: number, last: number) => {
      ++this.questions;
      return Promise.resolve(after < this.pruned ? { events: [], lost: true }
        : { events: this.all(after, last), lost: false });
    },
    get: () => Promise.resolve({ items: [operation({})], next: null }),
  } as unknown as Api;
}

const numbers = (log: EventLog) => log.log.events.map(({ number }) => number);
const expected = (host: Host, after: number, last: number) =>
  host.all(after, last).map(({ number }) => number).reverse();

test("older events are read page by page, down to the first that is kept", async () => {
  const host = new Host(0, 1234);
  const log = new EventLog(host.api, () => undefined);
  await log.catchUp();
  assert.deepEqual(numbers(log), expected(host, 734, 1234));
  assert.deepEqual([log.log.complete, log.reading, log.operations.size], [false, 0, 1]);
  await log.older();
  await log.older();
  assert.deepEqual(numbers(log), expected(host, 0, 1234));
  assert.equal(log.log.complete, true);
});

test("where older events are gone, what is left is read, and the log is complete", async () => {
  const host = new Host(700, 1234);
  const log = new EventLog(host.api, () => undefined);
  await log.catchUp();
  for (let asked = 0; !log.log.complete && asked < 40; ++asked) await log.older();
  assert.equal(log.log.complete, true);
  assert.deepEqual(numbers(log), expected(host, 700, 1234));
});

test("500 live events are one draw", async () => {
  const host = new Host(0, 5);
  let draws = 0;
  const log = new EventLog(host.api, () => { ++draws; });
  await log.catchUp();
  const before = draws;
  for (const one of host.all(5, 505)) log.add(one);
  drawFrame();
  assert.equal(draws, before + 1);
  assert.deepEqual(numbers(log), expected(host, 0, 505));
});

test("what comes while nobody looks is bounded, and the newest of it is there without a hole",
  async () => {
    const waiting = new Host(0, 0).all(0, 20_000);
    const [all, newest] = [waiting.length, waiting.at(-1)];
    assert.equal(dropOld(waiting), all - EVENTS_MAX);
    assert.deepEqual([waiting.length, waiting.at(-1)], [EVENTS_MAX, newest]);
    assert.equal(dropOld(waiting), 0);
    const host = new Host(0, 8);
    const log = new EventLog(host.api, () => undefined);
    await log.catchUp();
    for (const one of host.all(8, 20_008)) log.add(one);
    drawFrame();
    assert.deepEqual(numbers(log), expected(host, 0, 20_008).slice(0, EVENTS_MAX));
    log.hold();
    for (const one of host.all(20_008, 40_008)) log.add(one);
    drawFrame();
    assert.equal(log.waiting, 18_000);
  });

test("a log that is held counts what comes, and has it without a hole when it is released",
  async () => {
    const host = new Host(0, 8);
    const log = new EventLog(host.api, () => undefined);
    await log.catchUp();
    log.hold();
    for (const one of host.all(8, 31)) log.add(one);
    host.last = 31;
    drawFrame();
    assert.deepEqual([numbers(log), log.waiting], [expected(host, 0, 8), 20]);
    log.release();
    await log.catchUp();
    assert.deepEqual([numbers(log), log.waiting], [expected(host, 0, 31), 0]);
  });

test("what comes while a page is read is not lost", async () => {
  const host = new Host(0, 8);
  const log = new EventLog(host.api, () => undefined);
  const read = log.catchUp();
  for (const one of host.all(7, 12)) log.add(one);
  drawFrame();
  await read;
  assert.deepEqual(numbers(log), expected(host, 0, 12));
});

test("a failure is shown, and the next question is asked all the same", async () => {
  const host = new Host(0, 8);
  const log = new EventLog({ ...host.api, eventPlace: () => Promise.reject(new Error("away")) },
    () => undefined);
  await log.catchUp();
  assert.match(log.problem?.detail ?? "", /away/);
  await log.older();
  assert.equal(log.reading, 0);
});
