// SPDX-License-Identifier: Apache-2.0
// VMs with what they hold; and holders that libvirt does not run, which hold VFs like VMs.
import type { Attachment, Verdict, VmInfo } from "../transport/types";
import { isProved } from "./cells";

export interface VmRow {
  name: string;
  uuid: string | null; // null: not a VM of libvirt
  state: VmInfo["state"] | "external";
  attachments: readonly Attachment[];
  proved: number;
  addresses: string[];
  worst: Verdict | null; // of the latest runs; null: none has run
  verifiedAt: string | null; // when the oldest of the latest runs ended
}

const WORST_FIRST: readonly Verdict[] = ["fail", "pending", "skip", "not_applicable", "pass"];

export function vmRows(vms: readonly VmInfo[], attachments: readonly Attachment[]): VmRow[] {
  const held = new Map<string, Attachment[]>();
  for (const attachment of attachments) {
    const holder = attachment.vm_uuid === "" ? `external ${attachment.vm}` : attachment.vm_uuid;
    held.set(holder, [...held.get(holder) ?? [], attachment]);
  }
  const external = [...held].filter(([holder]) => holder.startsWith("external "))
    .map(([, those]) => row(those[0]!.vm, null, "external", those));
  return [...vms.map(vm => row(vm.name, vm.uuid, vm.state, held.get(vm.uuid) ?? [])), ...external];
}

function byVf({ vf: one }: Attachment, { vf: other }: Attachment): number {
  return one.pf === other.pf ? one.index - other.index : one.pf < other.pf ? -1 : 1;
}

function row(name: string, uuid: string | null, state: VmRow["state"],
             held: readonly Attachment[]): VmRow {
  const attachments = [...held].sort(byVf);
  const runs = attachments.flatMap(one => one.verification ?? []);
  const ends = runs.flatMap(run => run.finished_at ?? []).sort();
  return {
    name, uuid, state, attachments,
    proved: attachments.filter(isProved).length,
    addresses: attachments.flatMap(one => one.address ?? []),
    worst: WORST_FIRST.find(verdict => runs.some(run => run.verdict === verdict)) ?? null,
    verifiedAt: ends[0] ?? null,
  };
}
