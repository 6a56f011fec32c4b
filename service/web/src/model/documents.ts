// SPDX-License-Identifier: Apache-2.0
// Documents of the API as a person edits them, as text.
import type { DesiredChange } from "../transport/types";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export function documentText(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

export type Parsed = { document: Json } | { wrong: string };

export function parsed(text: string): Parsed {
  try {
    return { document: JSON.parse(text) as Json };
  } catch (error) {
    const wrong = error instanceof Error ? error.message : String(error);
    const place = /at position (\d+)(?! \()/.exec(wrong);
    // Newer browsers name the line themselves.
    return { wrong: place === null || /line \d+/.test(wrong) ? wrong
      : `${wrong} (${lineAndColumn(text, Number(place[1]))})` };
  }
}

function lineAndColumn(text: string, position: number): string {
  const before = text.slice(0, position).split("\n");
  return `line ${before.length} column ${before.at(-1)!.length + 1}`;
}

export function isSame(one: Json, other: Json): boolean {
  if (!isObject(one) || !isObject(other)) {
    if (Array.isArray(one) && Array.isArray(other))
      return one.length === other.length && one.every((item, at) => isSame(item, other[at]!));
    return one === other;
  }
  const names = Object.keys(one);
  return names.length === Object.keys(other).length
    && names.every(name => name in other && isSame(one[name]!, other[name]!));
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface Merged {
  document: Json;
  both: string[]; // JSON pointers of what both changed in different ways; mine stays
}

// What others changed since `base`, taken into mine. Members are compared one by one, lists whole.
export function merged(base: Json, mine: Json, theirs: Json): Merged {
  const both: string[] = [];
  const document = mergedAt("", base, mine, theirs, both);
  return { document: document ?? {}, both };
}

type Member = Json | undefined; // undefined: there is none

function mergedAt(pointer: string, base: Member, mine: Member, theirs: Member,
                  both: string[]): Member {
  if (isSameMember(mine, theirs) || isSameMember(theirs, base)) return mine;
  if (isSameMember(mine, base)) return theirs;
  if (isObject(mine) && isObject(theirs)) {
    const before = isObject(base) ? base : {};
    const names = new Set([...Object.keys(mine), ...Object.keys(theirs)]);
    const members = [...names].map((name): [string, Member] => [name, mergedAt(
      `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      own(before, name), own(mine, name), own(theirs, name), both)]);
    return Object.fromEntries(members.filter((one): one is [string, Json] => one[1] !== undefined));
  }
  both.push(pointer);
  return mine;
}

function own(of: { [name: string]: Json }, name: string): Member {
  return Object.hasOwn(of, name) ? of[name] : undefined;
}

function isSameMember(one: Member, other: Member): boolean {
  return one === undefined || other === undefined ? one === other : isSame(one, other);
}

// The text with one member as given; null where the text is no object.
export function withMember(text: string, name: string, value: Member): string | null {
  const now = parsed(text);
  if ("wrong" in now || !isObject(now.document)) return null;
  const { [name]: _, ...others } = now.document;
  if (value === undefined) return documentText(others);
  return documentText(name in now.document ? { ...now.document, [name]: value }
    : { [name]: value, ...others });
}

export function memberOf(text: string, name: string): Member {
  const now = parsed(text);
  return "wrong" in now || !isObject(now.document) ? undefined : own(now.document, name);
}

// Names of the objects of the desired document that will not be there any more.
export function removedObjects(changes: readonly DesiredChange[]): string[] {
  return changes.filter(one => one.then === null)
    .map(one => one.pointer.split("/")).filter(parts => parts.length === 3)
    .map(parts => parts[2]!.replaceAll("~1", "/").replaceAll("~0", "~"));
}
