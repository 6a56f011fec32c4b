// SPDX-License-Identifier: Apache-2.0
// Runs what changed once for each animation frame, however many events came since the last one.
// What changed as a whole, such as a table, is drawn again a few times a second at most.
const WHOLE_MS_MIN = 250;
// More would keep the page from answering a person; the next frame goes on with them.
const TASKS_MAX = 200;

type Task = () => void;
const tasks = new Set<Task>();
const wholes = new Set<Task>();
let asked = false;

export function thisFrame(task: Task): void {
  tasks.add(task);
  ask();
}

// Waits by a timer: a frame that draws nothing costs the browser almost as much as one that does.
export function nowAndThen(task: Task, lastRun: number): void {
  if (wholes.has(task)) return;
  wholes.add(task);
  setTimeout(() => {
    wholes.delete(task);
    thisFrame(task);
  }, Math.max(0, lastRun + WHOLE_MS_MIN - performance.now()));
}

function ask(): void {
  if (asked) return;
  asked = true;
  requestAnimationFrame(run);
}

function run(): void {
  asked = false;
  const ready = [...tasks].slice(0, TASKS_MAX);
  for (const task of ready) tasks.delete(task);
  for (const task of ready) task();
  if (tasks.size > 0) ask();
}
