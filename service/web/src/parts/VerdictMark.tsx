// SPDX-License-Identifier: Apache-2.0
import { text } from "../text/en";
import type { Verdict } from "../transport/types";

// A verdict by colour, mark and word.
export function VerdictMark({ verdict }: { verdict: Verdict | null }) {
  if (verdict === null) return <span class="quiet">{text.notVerified}</span>;
  return <span class={`verdict ${verdict}`}>{text.verdict(verdict)}</span>;
}
