// SPDX-License-Identifier: Apache-2.0
// The mark of each state, cut out of its cell or drawn into it, so that colour is never all there
// is. Paths begin at the cell's corner and are filled by the even-odd rule.
import type { CellState } from "./cells";

const SQUARE = "h12v12h-12z";
const RING = `${SQUARE}m1.5 1.5v9h9v-9z`;
const MARKS: Readonly<Record<CellState, string>> = {
  free: RING,
  reserved: `${RING}m3 3h3v3h-3z`,
  proved: `${SQUARE}m2 6.5l1.5 -1.5l1.8 1.8l3.6 -3.8l1.5 1.5l-5.1 5.3z`,
  unproved: `${SQUARE}m5 2h2v5h-2zm0 6.5h2v1.8h-2z`,
  drifted: `${SQUARE}m2.5 3.5h7v1.6h-7zm0 3.5h7v1.6h-7z`,
  quarantined: `${SQUARE}m2 3.4l1.4 -1.4l2.6 2.6l2.6 -2.6l1.4 1.4l-2.6 2.6l2.6 2.6l-1.4 1.4`
    + "l-2.6 -2.6l-2.6 2.6l-1.4 -1.4l2.6 -2.6z",
  stuck: `${SQUARE}m2.5 2h7l-7 8h7z`,
  in_use: `${SQUARE}m2 8.5l6.5 -6.5h1.5v1.5l-6.5 6.5h-1.5z`,
};

export function markAt(state: CellState, x: number, y: number): string {
  return `M${x} ${y}${MARKS[state]}`;
}
