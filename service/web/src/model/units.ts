// SPDX-License-Identifier: Apache-2.0
// The API names figures with their units: bandwidth_mbps, p50_us, messages_per_s.
export const UNITS = ["mbps", "mib_per_s", "per_s", "us", "percent", "bytes", "count"] as const;
export type Unit = typeof UNITS[number];

export interface Named {
  stem: string; // "p50", "bandwidth"
  unit: Unit; // "count": a number of something, which the stem names
}

export function namedFigure(name: string): Named {
  const unit = UNITS.find(one => name.endsWith(`_${one}`));
  if (unit === undefined) return { stem: name, unit: "count" };
  return { stem: name.slice(0, -unit.length - 1), unit };
}
