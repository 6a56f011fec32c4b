// SPDX-License-Identifier: Apache-2.0
// Times as people read them. `now` is a parameter, so that a page decides when it moves.
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export type Age = { unit: "second" | "minute" | "hour" | "day"; count: number };

export function ageOf(at: number, now: number): Age {
  const past = Math.max(0, now - at);
  if (past < MINUTE) return { unit: "second", count: Math.floor(past / SECOND) };
  if (past < HOUR) return { unit: "minute", count: Math.floor(past / MINUTE) };
  if (past < DAY) return { unit: "hour", count: Math.floor(past / HOUR) };
  return { unit: "day", count: Math.floor(past / DAY) };
}

// Until when the age reads as it does now.
export function ageChangesIn(at: number, now: number): number {
  const past = Math.max(0, now - at);
  const step = past < MINUTE ? SECOND : past < HOUR ? MINUTE : past < DAY ? HOUR : DAY;
  return step - past % step;
}
