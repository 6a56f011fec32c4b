// SPDX-License-Identifier: Apache-2.0
// What a VF's cell shows.
import type { Attachment, Vf } from "../transport/types";

// Worst first: of several that hold, the first is shown.
export const CELL_STATES = [
  "stuck", "quarantined", "drifted", "in_use", "unproved", "proved", "reserved", "free",
] as const;
export type CellState = typeof CELL_STATES[number];

export function vfKey(pf: string, index: number): string {
  return `${pf}/${index}`;
}

export interface PfHealth {
  stuck: boolean; // a call for this PF hangs in the kernel
}

export function cellState(vf: Vf, attachment: Attachment | undefined, pf: PfHealth): CellState {
  if (pf.stuck) return "stuck";
  if (vf.state === "quarantined") return "quarantined";
  if (vf.drift.length > 0) return "drifted";
  if (vf.state === "attached") return isProved(attachment) ? "proved" : "unproved";
  return vf.state;
}

export function isProved(attachment: Attachment | undefined): boolean {
  return attachment?.state === "attached" && attachment.verification?.verdict === "pass";
}

export type Counts = Readonly<Record<CellState, number>>;

export function countStates(states: Iterable<CellState>): Counts {
  const counts = Object.fromEntries(CELL_STATES.map(state => [state, 0])) as
    Record<CellState, number>;
  for (const state of states) ++counts[state];
  return counts;
}
