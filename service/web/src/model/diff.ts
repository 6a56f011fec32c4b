// SPDX-License-Identifier: Apache-2.0
// The difference of two texts, line by line, by Myers' greedy algorithm.
export interface Line {
  mark: " " | "-" | "+";
  text: string;
}

// Texts that have less in common are shown as one replacing the other, which costs nothing.
const EDITS_MAX = 400;

export function diffLines(before: string, after: string): Line[] {
  const [old, young] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && head < young.length && old[head] === young[head]) ++head;
  let tail = 0;
  while (tail < old.length - head && tail < young.length - head
    && old[old.length - 1 - tail] === young[young.length - 1 - tail]) ++tail;
  const middle = differing(old.slice(head, old.length - tail),
    young.slice(head, young.length - tail));
  return [...marked(" ", old.slice(0, head)), ...middle,
    ...marked(" ", old.slice(old.length - tail))];
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function marked(mark: Line["mark"], lines: readonly string[]): Line[] {
  return lines.map(text => ({ mark, text }));
}

// reach[k] is how far along `old` the furthest path on diagonal k (old minus young) comes.
type Reach = Map<number, number>;

function differing(old: readonly string[], young: readonly string[]): Line[] {
  const trace: Reach[] = [];
  let reach: Reach = new Map([[1, 0]]);
  for (let edits = 0; edits <= Math.min(old.length + young.length, EDITS_MAX); ++edits) {
    trace.push(reach);
    const next: Reach = new Map(reach);
    for (let k = -edits; k <= edits; k += 2) {
      let x = goesDown(reach, k, edits) ? at(reach, k + 1) : at(reach, k - 1) + 1;
      while (x < old.length && x - k < young.length && old[x] === young[x - k]) ++x;
      next.set(k, x);
      if (x >= old.length && x - k >= young.length) return linesBack(trace, old, young);
    }
    reach = next;
  }
  return [...marked("-", old), ...marked("+", young)];
}

function at(reach: Reach, k: number): number {
  return reach.get(k) ?? -1;
}

function goesDown(reach: Reach, k: number, edits: number): boolean {
  return k === -edits || (k !== edits && at(reach, k - 1) < at(reach, k + 1));
}

function linesBack(trace: readonly Reach[], old: readonly string[],
                   young: readonly string[]): Line[] {
  const lines: Line[] = [];
  let [x, y] = [old.length, young.length];
  for (let edits = trace.length - 1; edits >= 0; --edits) {
    const reach = trace[edits]!;
    const k = x - y;
    const from = goesDown(reach, k, edits) ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : at(reach, from);
    const fromY = edits === 0 ? 0 : fromX - from;
    for (; x > fromX && y > fromY; --x, --y) lines.push({ mark: " ", text: old[x - 1]! });
    if (edits === 0) break;
    lines.push(x === fromX ? { mark: "+", text: young[y - 1]! } : { mark: "-", text: old[x - 1]! });
    [x, y] = [fromX, fromY];
  }
  return lines.reverse();
}

export interface Hunk {
  line: number; // where it begins in the later text, from 1
  lines: Line[];
}

// The changed lines with a few around them.
export function hunksOf(lines: readonly Line[], around = 3): Hunk[] {
  const near = new Set<number>();
  lines.forEach(({ mark }, place) => {
    if (mark === " ") return;
    for (let one = place - around; one <= place + around; ++one) near.add(one);
  });
  const hunks: Hunk[] = [];
  let line = 1;
  lines.forEach((one, place) => {
    if (near.has(place)) {
      if (!near.has(place - 1) || hunks.length === 0) hunks.push({ line, lines: [] });
      hunks.at(-1)!.lines.push(one);
    }
    if (one.mark !== "-") ++line;
  });
  return hunks;
}
