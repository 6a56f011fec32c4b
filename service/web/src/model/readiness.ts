// SPDX-License-Identifier: Apache-2.0
// The report of the host's checks as a person reads it: worst first, and what says the same of
// several devices once.
import type { Finding, Remedy } from "../transport/types";

export type Result = Finding["result"];
export const RESULTS: readonly Result[] = ["failed", "warning", "unknown", "ok", "not_applicable"];
// What a person looks for first.
export const SHOWN_FIRST: readonly Result[] = ["failed", "warning", "unknown"];

const RADII: readonly Remedy["blast_radius"][] = ["none", "netdev", "host", "reboot"];

export interface FindingGroup {
  names: string[]; // rule and subject of each, as `causedBy` of others names it
  result: Result;
  rule: string;
  subjects: string[]; // empty: the machine
  detail: string;
  causedBy: string | null;
  evidence: Finding["evidence"];
  remedy: Remedy | null; // of all of them
}

export function countResults(findings: readonly Finding[]): Readonly<Record<Result, number>> {
  const counts = { failed: 0, warning: 0, unknown: 0, ok: 0, not_applicable: 0 };
  for (const { result } of findings) ++counts[result];
  return counts;
}

// Worst first; equals stay in the report's order, in which causes come before what they explain.
export function groupsOf(findings: readonly Finding[]): FindingGroup[] {
  const groups = new Map<string, Finding[]>();
  findings.forEach((finding, at) => {
    const key = likeness(finding, at);
    groups.set(key, [...groups.get(key) ?? [], finding]);
  });
  return [...groups.values()].map(groupOf)
    .sort((one, other) => RESULTS.indexOf(one.result) - RESULTS.indexOf(other.result));
}

// Equal for findings that say the same of devices of one kind. One about the machine is alone.
function likeness(finding: Finding, at: number): string {
  if (finding.subject === "") return String(at);
  const { rule, result, detail, remedy, caused_by } = finding;
  return JSON.stringify([rule, result, formOf(detail), formOf(remedy?.note ?? ""),
    caused_by !== null]);
}

// Without what differs between devices of one kind: "0000:3b:00.0" and "mlx5_0".
function formOf(text: string): string {
  return text.replace(/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/g, "@").replace(/\d+/g, "#");
}

function groupOf(those: Finding[]): FindingGroup {
  const first = those[0]!;
  return {
    names: those.map(one => [one.rule, one.subject].filter(Boolean).join(" ")),
    result: first.result, rule: first.rule, detail: first.detail,
    subjects: those.map(one => one.subject).filter(Boolean),
    causedBy: first.caused_by, evidence: first.evidence,
    remedy: remedyOf(those.flatMap(one => one.remedy ?? [])),
  };
}

// What to type for all of them, in order, each command once.
function remedyOf(remedies: readonly Remedy[]): Remedy | null {
  const [first] = remedies;
  if (first === undefined) return null;
  const once = (lists: readonly string[][]): string[] => [...new Set(lists.flat())];
  const commands = once(remedies.map(one => one.commands));
  // A reboot for each would be one too many, and too early.
  const reboot = commands.filter(one => one === "reboot");
  const radius = Math.max(...remedies.map(one => RADII.indexOf(one.blast_radius)));
  return {
    commands: [...commands.filter(one => one !== "reboot"), ...reboot],
    drain: once(remedies.map(one => one.drain)),
    blast_radius: RADII[radius] ?? first.blast_radius,
    note: first.note,
  };
}

// Every word must be somewhere in what a person reads of a group.
export function chosenGroups(groups: readonly FindingGroup[], results: ReadonlySet<Result>,
                             words: string): FindingGroup[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(word => word !== "");
  return groups.filter(group => results.has(group.result)).filter(group => {
    const { remedy } = group;
    const text = [group.rule, ...group.subjects, group.detail, remedy?.note ?? "",
      ...remedy?.commands ?? [], ...remedy?.drain ?? [],
      ...group.evidence.flatMap(one => [one.source, one.text])].join("\n").toLowerCase();
    return wanted.every(word => text.includes(word));
  });
}

export interface Look {
  results: ReadonlySet<Result>;
  words: string;
}

export function lookOf(query: ReadonlyMap<string, string>): Look {
  const given = query.get("show")?.split(",");
  const results = given === undefined ? SHOWN_FIRST : RESULTS.filter(one => given.includes(one));
  return { results: new Set(results), words: query.get("words") ?? "" };
}

export function queryOfLook({ results, words }: Look): Record<string, string> {
  const show = RESULTS.filter(one => results.has(one)).join(",");
  return {
    ...(show === SHOWN_FIRST.join(",") ? {} : { show }), ...(words === "" ? {} : { words }),
  };
}

// What keeps vfmgrd from being ready. A name of a later version stays as it is.
export type Hindrance =
  | { is: "store" | "libvirt" | "unobserved" }
  | { is: "pf"; pci: string }
  | { is: "other"; name: string };

export function hindranceOf(name: string): Hindrance {
  if (name === "store" || name === "libvirt") return { is: name };
  if (name === "not observed yet") return { is: "unobserved" };
  return /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/.test(name)
    ? { is: "pf", pci: name } : { is: "other", name };
}
