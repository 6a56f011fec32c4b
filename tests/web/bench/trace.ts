// SPDX-License-Identifier: Apache-2.0
// What Chromium's trace says of pages' main threads: their tasks, and the CPU time of each. Script,
// style, layout, painting and the collection of garbage are all tasks there.
import assert from "node:assert/strict";
import type { Browser, CDPSession, Page } from "playwright-core";

const TASK = { category: "disabled-by-default-devtools.timeline", name: "RunTask" };
const CATEGORIES = ["-*", TASK.category, "blink.user_timing"];
const US_PER_MS = 1000;

// Times of the trace are microseconds.
interface Traced {
  cat: string;
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  tdur?: number; // of its thread's CPU
}

export interface Task {
  cpuMs: number;
  wallMs: number;
}

// Returns the tasks of each page while `act` runs. Marks in the page say in the trace which thread
// is the page's, and when `act` begins and ends. The tasks that set them are among those returned,
// which are never none.
export async function tasksOf(browser: Browser, pages: readonly Page[],
                              act: () => Promise<unknown>): Promise<Task[][]> {
  const sessions = await Promise.all(pages.map(page => page.context().newCDPSession(page)));
  await browser.startTracing(undefined, { categories: CATEGORIES });
  await mark(sessions, "begin");
  await act();
  await mark(sessions, "end");
  const text = (await browser.stopTracing()).toString();
  await Promise.all(sessions.map(session => session.detach()));
  const { traceEvents } = JSON.parse(text) as { traceEvents: Traced[] };
  return pages.map((_, at) => tasksBetween(traceEvents, nameOf("begin", at), nameOf("end", at)));
}

function nameOf(place: string, page: number): string {
  return `vfmgr bench ${place} ${page}`;
}

async function mark(sessions: readonly CDPSession[], place: string): Promise<void> {
  await Promise.all(sessions.map((session, at) => session.send("Runtime.evaluate",
    { expression: `performance.mark(${JSON.stringify(nameOf(place, at))}); 0` })));
}

function tasksBetween(events: readonly Traced[], begin: string, end: string): Task[] {
  const marks = [begin, end].map(name => events.find(event => event.name === name));
  const [from, to] = marks;
  assert(from !== undefined && to !== undefined, `the trace lacks the mark ${begin} or ${end}`);
  // A page that is loaded again may be given another process.
  const threads = new Set([from, to].map(threadOf));
  const tasks = events
    .filter(event => event.ph === "X" && event.name === TASK.name
      && event.cat.includes(TASK.category) && threads.has(threadOf(event))
      && event.ts + (event.dur ?? 0) > from.ts && event.ts < to.ts)
    .sort((one, other) => one.ts - other.ts);
  assert(tasks.every(task => task.tdur !== undefined), "the trace has no CPU times");
  return outermost(tasks).map(({ tdur, dur }) =>
    ({ cpuMs: tdur! / US_PER_MS, wallMs: (dur ?? 0) / US_PER_MS }));
}

function threadOf({ pid, tid }: Traced): string {
  return `${pid} ${tid}`;
}

// A task that waits may run others inside; their time is its time.
function outermost(tasks: readonly Traced[]): Traced[] {
  const ends = new Map<string, number>();
  return tasks.filter(task => {
    const within = task.ts < (ends.get(threadOf(task)) ?? -Infinity);
    if (!within) ends.set(threadOf(task), task.ts + (task.dur ?? 0));
    return !within;
  });
}

export function cpuMs(tasks: readonly Task[]): number {
  return tasks.reduce((sum, task) => sum + task.cpuMs, 0);
}

export function longest(tasks: readonly Task[]): Task {
  return tasks.reduce((one, other) => one.cpuMs >= other.cpuMs ? one : other);
}
