// SPDX-License-Identifier: Apache-2.0
// What an operation's time went to.
import type { Operation, Span } from "../transport/types";

export interface SpanBar {
  span: Span;
  left: number; // percent of the whole
  width: number;
}
export interface Spans {
  bars: SpanBar[];
  wholeUs: number;
  otherUs: number; // went to code that is no span
}

export function spansOf(operation: Operation): Spans | null {
  const { spans, created_at, finished_at } = operation;
  if (spans.length === 0 || finished_at === null) return null;
  // The times are in milliseconds, so the last span may end after them.
  const end = Math.max(...spans.map(span => span.began_us + span.took_us));
  const wholeUs = Math.max(end, (Date.parse(finished_at) - Date.parse(created_at)) * 1000, 1);
  const known = spans.reduce((all, span) => all + span.took_us, 0);
  return {
    wholeUs, otherUs: Math.max(0, wholeUs - known),
    bars: spans.map(span => ({
      span, left: 100 * span.began_us / wholeUs, width: 100 * span.took_us / wholeUs,
    })),
  };
}

// As the API describes cancelling; the API decides.
const UNCANCELLED: readonly Operation["kind"][] = [
  "detach", "restore", "configure_firmware", "end_gone_pf", "confirm_gone_pf", "rekey_pf",
];

export function canBeCancelled(operation: Operation): boolean {
  return operation.finished_at === null && !UNCANCELLED.includes(operation.kind);
}

// "/v1/attachments/3f9c2b1d" is ["attachments", "3f9c2b1d"].
export function subjectOf(operation: Operation): string[] {
  return operation.subject.split("/").filter(part => part !== "" && part !== "v1")
    .map(part => decodeURIComponent(part));
}
