// SPDX-License-Identifier: Apache-2.0
// What the pages of a fleet keep of its hosts' PFs, attachments and VMs: a row of each. The bodies
// of a large fleet would fill the browser.
import type { OfHost } from "../transport/fleet_types";
import type { Attachment, Pf, Verdict, VmInfo } from "../transport/types";
import { isProved } from "./cells";
import { byName } from "./fleet";

export type Link = "up" | "no carrier" | "down";

export interface PfOfFleet {
  host: string;
  pci: string;
  ifname: string;
  rail: string | null; // its label
  networks: readonly string[];
  link: Link;
  vfs: number;
  free: number;
  trouble: string | null; // why what it reports is not as it should be
}

export function pfRowOf(pf: OfHost<Pf>): PfOfFleet {
  const { info, vfs, spec } = pf;
  return {
    host: pf.host, pci: info.pci, ifname: info.ifname,
    rail: spec?.labels?.["rail"] ?? null,
    networks: pf.networks,
    link: info.carrier ? "up" : info.up ? "no carrier" : "down",
    vfs: vfs.length,
    free: vfs.filter(vf => vf.state === "free").length,
    trouble: pf.stuck ?? (pf.stale ? pf.stale_reason : pf.drift[0] ?? null),
  };
}

export interface HeldVf {
  host: string;
  id: string; // of the attachment
  vm: string;
  vmUuid: string; // "": not a VM of libvirt
  pf: string;
  index: number;
  network: string | null;
  address: string | null;
  mac: string | null;
  state: Attachment["state"];
  proved: boolean;
  verdict: Verdict | null;
  verifiedAt: string | null;
  by: string | null;
  since: string;
}

export function heldRowOf(one: OfHost<Attachment>): HeldVf {
  return {
    host: one.host, id: one.id, vm: one.vm, vmUuid: one.vm_uuid, pf: one.vf.pf,
    index: one.vf.index, network: one.spec.network ?? null, address: one.address,
    mac: one.settings.mac ?? null, state: one.state, proved: isProved(one),
    verdict: one.verification?.verdict ?? null,
    verifiedAt: one.verification?.finished_at ?? null,
    by: one.requested_by, since: one.created_at,
  };
}

export interface VmOfFleet {
  host: string;
  uuid: string;
  name: string;
  state: VmInfo["state"];
}

export function vmRowOf({ host, uuid, name, state }: OfHost<VmInfo>): VmOfFleet {
  return { host, uuid, name, state };
}

export interface Proofs {
  host: string;
  proved: number;
  failed: number;
}

export function proofsOf(host: string, held: readonly HeldVf[]): Proofs {
  return {
    host, proved: held.filter(one => one.proved).length,
    failed: held.filter(one => one.verdict === "fail").length,
  };
}

export interface FleetVmRow extends Proofs {
  name: string;
  state: VmInfo["state"] | "external";
  held: number;
  addresses: string;
}

// With holders that libvirt does not run, which hold VFs like VMs.
export function fleetVmRows(vms: readonly VmOfFleet[], held: readonly HeldVf[]): FleetVmRow[] {
  const byHolder = new Map<string, HeldVf[]>();
  for (const one of held) {
    const holder = holderKey(one.host, one.vmUuid, one.vm);
    const those = byHolder.get(holder);
    if (those === undefined) byHolder.set(holder, [one]);
    else those.push(one);
  }
  const known = new Set(vms.map(vm => holderKey(vm.host, vm.uuid, vm.name)));
  const rows = vms.map(vm =>
    rowOf(vm.host, vm.name, vm.state, byHolder.get(holderKey(vm.host, vm.uuid, vm.name)) ?? []));
  const others = [...byHolder].filter(([holder]) => !known.has(holder))
    .map(([, those]) => rowOf(those[0]!.host, those[0]!.vm, "external", those));
  return [...rows, ...others];
}

function holderKey(host: string, uuid: string, name: string): string {
  return uuid === "" ? `${host} external ${name}` : `${host} ${uuid}`;
}

function rowOf(host: string, name: string, state: FleetVmRow["state"],
               those: readonly HeldVf[]): FleetVmRow {
  return {
    ...proofsOf(host, those), name, state, held: those.length,
    addresses: those.flatMap(one => one.address ?? []).join(" "),
  };
}

// --- rails ----------------------------------------------------------------------------------

export type RailBy = "label" | "network";

export interface Rail {
  name: string | null; // null: of PFs without one
  hosts: number;
  up: number;
  notUp: number;
  vfs: number;
  free: number;
}

export interface RailHost {
  host: string;
  on: readonly (readonly PfOfFleet[])[]; // for each rail
}

export interface Rails {
  rails: Rail[];
  hosts: RailHost[];
}

function namesOf(pf: PfOfFleet, by: RailBy): readonly (string | null)[] {
  if (by === "label") return [pf.rail];
  return pf.networks.length === 0 ? [null] : pf.networks;
}

// PFs of several networks are on several rails.
export function railsOf(pfs: readonly PfOfFleet[], by: RailBy): Rails {
  const names = [...new Set(pfs.flatMap(pf => namesOf(pf, by)))].sort((one, other) =>
    one === null ? 1 : other === null ? -1 : byName(one, other));
  const places = new Map(names.map((name, at) => [name, at]));
  const rails = names.map((name): Rail =>
    ({ name, hosts: 0, up: 0, notUp: 0, vfs: 0, free: 0 }));
  const hosts = new Map<string, PfOfFleet[][]>();
  for (const pf of pfs) {
    let on = hosts.get(pf.host);
    if (on === undefined) hosts.set(pf.host, on = names.map(() => []));
    for (const name of namesOf(pf, by)) {
      const at = places.get(name)!;
      const rail = rails[at]!;
      if (on[at]!.length === 0) ++rail.hosts;
      on[at]!.push(pf);
      if (pf.link === "up") ++rail.up;
      else ++rail.notUp;
      rail.vfs += pf.vfs;
      rail.free += pf.free;
    }
  }
  return {
    rails,
    hosts: [...hosts].map(([host, on]) => ({ host, on }))
      .sort((one, other) => byName(one.host, other.host)),
  };
}
