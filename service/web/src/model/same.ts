// SPDX-License-Identifier: Apache-2.0
// Whether two bodies of the API say the same. Lists of a thousand are read again each second while
// much happens: comparing them as they are costs a fraction of writing both as JSON.
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isBody(one) || !isBody(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length
    && names.every(name => name in other && isSame(one[name], other[name]));
}

function isBody(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
