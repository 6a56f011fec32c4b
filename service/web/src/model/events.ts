// SPDX-License-Identifier: Apache-2.0
// Events as a person filters them: what they are about and how much they matter.
import type { Event, EventKind } from "../transport/types";

export const SEVERITIES = ["trouble", "attention", "normal"] as const;
export type Severity = typeof SEVERITIES[number];
export const TOPICS = [
  "operations", "attachments", "verifications", "drift", "pfs", "configuration", "vms", "access",
  "host",
] as const;
export type Topic = typeof TOPICS[number];

const KINDS: Readonly<Record<EventKind, readonly [Topic, Severity]>> = {
  operation_accepted: ["operations", "normal"],
  operation_succeeded: ["operations", "normal"],
  operation_failed: ["operations", "trouble"],
  attaching: ["attachments", "normal"],
  attached: ["attachments", "normal"],
  attach_failed: ["attachments", "trouble"],
  attachment_changed: ["attachments", "normal"],
  verified: ["verifications", "normal"],
  detaching: ["attachments", "normal"],
  detached: ["attachments", "normal"],
  detach_failed: ["attachments", "trouble"],
  quarantined: ["attachments", "trouble"],
  quarantine_lifted: ["attachments", "normal"],
  drift: ["drift", "attention"],
  settled: ["drift", "normal"],
  lost: ["drift", "trouble"],
  repaired: ["drift", "normal"],
  repair_failed: ["drift", "trouble"],
  pf_configured: ["pfs", "normal"],
  pf_forgotten: ["pfs", "normal"],
  pf_rekeyed: ["pfs", "normal"],
  firmware_configured: ["pfs", "normal"],
  pf_here: ["pfs", "normal"],
  pf_unbound: ["pfs", "attention"],
  pf_renumbered: ["pfs", "attention"],
  pf_gone: ["pfs", "trouble"],
  pf_stuck: ["pfs", "trouble"],
  pf_answers: ["pfs", "normal"],
  pci_busy: ["pfs", "trouble"],
  pci_free: ["pfs", "normal"],
  link_up: ["pfs", "normal"],
  link_down: ["pfs", "attention"],
  num_vfs_changed: ["pfs", "normal"],
  rdma_link_configured: ["configuration", "normal"],
  rdma_link_removed: ["configuration", "normal"],
  network_changed: ["configuration", "normal"],
  network_removed: ["configuration", "normal"],
  partition_changed: ["configuration", "attention"],
  pool_changed: ["configuration", "normal"],
  pool_removed: ["configuration", "normal"],
  tenant_changed: ["access", "normal"],
  tenant_removed: ["access", "normal"],
  identities_changed: ["configuration", "normal"],
  fleet_joined: ["access", "attention"],
  fleet_left: ["access", "attention"],
  reservation_made: ["attachments", "normal"],
  reservation_released: ["attachments", "normal"],
  reservation_expired: ["attachments", "attention"],
  token_created: ["access", "normal"],
  token_rotated: ["access", "normal"],
  token_revoked: ["access", "normal"],
  vm_appeared: ["vms", "normal"],
  vm_started: ["vms", "normal"],
  vm_stopped: ["vms", "normal"],
  vm_disappeared: ["vms", "normal"],
  declaration_refused: ["vms", "trouble"],
  libvirt_lost: ["host", "trouble"],
  libvirt_found: ["host", "normal"],
  store_read_only: ["host", "trouble"],
  store_writable: ["host", "normal"],
  vfmgrd_started: ["host", "attention"],
};

// Later versions of the API add kinds, which this console shows all the same.
function known(kind: string): readonly [Topic, Severity] {
  return (KINDS as Readonly<Record<string, readonly [Topic, Severity]>>)[kind]
    ?? ["host", "normal"];
}

export function topicOf(event: Event): Topic {
  return known(event.kind)[0];
}

export function severityOf(event: Event): Severity {
  return event.kind === "verified" && event.verdict === "fail" ? "trouble" : known(event.kind)[1];
}

export function worstOf(severities: readonly Severity[]): Severity {
  return SEVERITIES.find(one => severities.includes(one)) ?? "normal";
}

export interface Piece {
  text: string;
  place: boolean; // a file, with the line where it is named
}

// A drift's detail names the files that create or change VFs of its PF: "/etc/rc.local:12 sets …".
export function piecesOf(detail: string): Piece[] {
  return detail.split(/((?<![\w:.])\/[\w.@%+\-/]*\w(?::\d+)?)/)
    .map((text, at) => ({ text, place: at % 2 === 1 }))
    .filter(({ text }) => text !== "");
}
