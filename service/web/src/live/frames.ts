// SPDX-License-Identifier: Apache-2.0
// Runs what changed once for each animation frame, however many events came since the last one.
// What changed as a whole, such as a table, is drawn again a few times a second at most.
const WHOLE_MS_MIN = 250;

type Task = () => void;
const cells = new Set<Task>();
const wholes = new Map<Task, number>(); // when it may run
let asked = false;

export function thisFrame(task: Task): void {
  cells.add(task);
  ask();
}

export function nowAndThen(task: Task, lastRun: number): void {
  if (!wholes.has(task)) wholes.set(task, lastRun + WHOLE_MS_MIN);
  ask();
}

function ask(): void {
  if (asked) return;
  asked = true;
  requestAnimationFrame(run);
}

function run(now: number): void {
  asked = false;
  const ready = [...cells];
  cells.clear();
  for (const task of ready) task();
  for (const [task, at] of wholes) {
    if (at > now) continue;
    wholes.delete(task);
    task();
  }
  if (wholes.size > 0) ask();
}
