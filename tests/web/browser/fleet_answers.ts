// SPDX-License-Identifier: Apache-2.0
// What three hosts of a fleet answer, as recorded in api/examples, with what differs of them: h1
// well, h2 cordoned and with a failed proof, h3 unreachable and quarantined.
import attachmentExample from "../../../api/examples/attachment.json";
import eventExample from "../../../api/examples/event.json";
import operationExample from "../../../api/examples/operation.json";
import pfExample from "../../../api/examples/pf.json";
import readinessExample from "../../../api/examples/readiness.json";
import vmExample from "../../../api/examples/vm_info.json";
import type { FleetEvent, FleetHost } from "../../../service/web/src/transport/fleet_types";
import { fleetHost } from "../model/bodies";
import type { Json } from "./daemon";

export const SINCE = "2026-01-31T11:00:00.000Z";
const AT = "2026-01-31T12:00:00.000Z";

export interface Recorded {
  host: FleetHost;
  pfs: Json[];
  vms: Json[];
  attachments: Json[];
}

// A PF of the example at another place, on a rail.
export function pfOn(rail: string, part: Json = {}): Json {
  const info = { ...pfExample.info, pci: `0000:0${rail}:00.0`, ifname: `rail${rail}`, ...part };
  return {
    ...pfExample, info, vfs: pfExample.vfs.map(vf => ({ ...vf, pf: info.pci })),
    spec: { ...pfExample.spec, labels: { rail } },
  };
}

function held(id: string, verdict: string, part: Json = {}): Json {
  return {
    ...attachmentExample, id,
    verification: { ...attachmentExample.verification, verdict }, ...part,
  };
}

export function threeHosts(): Recorded[] {
  return [
    { host: fleetHost("h1", { rack: "r1", labels: { zone: "a" } }),
      pfs: [pfOn("1"), pfOn("2")], vms: [vmExample], attachments: [held("3f9c2b1d", "pass")] },
    { host: fleetHost("h2", { rack: "r1", labels: { zone: "b", gpu: "h200" },
      cordoned: { at: AT, by: "token:0f1e2d3c", reason: "its fan is changed" } }),
    pfs: [pfOn("1"), pfOn("2", { carrier: false })], vms: [{ ...vmExample, name: "vm2" }],
    attachments: [held("4f9c2b1d", "fail", { vm: "vm2" })] },
    { host: fleetHost("h3", { rack: "r2", state: "quarantined",
      reason: "its store is older than what the fleet has seen of it",
      unreachable_since: SINCE, unreachable_why: "connection refused" }),
    pfs: [pfOn("1")], vms: [{ ...vmExample, name: "vm3" }],
    attachments: [held("5f9c2b1d", "pass", { vm: "vm3" })] },
  ];
}

export function fleetEvent(host: string, number: number, part: Json = {}): FleetEvent {
  return { host, ...eventExample, number, at: new Date().toISOString(), ...part } as FleetEvent;
}

// Bodies of the host's own API, by path; null: it has none there.
export function ownAnswer({ pfs, vms, attachments }: Recorded, path: string): Json | null {
  const list = (items: Json[]): Json => ({ items, next: null });
  const one = (items: Json[], name: string, value: string): Json | null =>
    items.find(item => item[name] === value) ?? null;
  const [, kind, id] = /^\/([^/?]+)(?:\/([^/?]+))?/.exec(path) ?? [];
  switch (kind) {
    case "pfs": return id === undefined ? list(pfs) : null;
    case "vms": return id === undefined ? list(vms) : one(vms, "uuid", id);
    case "attachments": return id === undefined ? list(attachments) : one(attachments, "id", id);
    case "operations": return list([operationExample as unknown as Json]);
    case "host": return id === "topology" ? { devices: [], pairs: [], notes: [] } : null;
    case "readyz": return readinessExample;
    default: return null;
  }
}

const RACK = 20;
const VFS_PER_PF = 16;
const RAILS = 4;

// Each with 64 VFs on 4 rails, some of them attached.
export function manyHosts(count: number, attached = 1): Recorded[] {
  const [vf] = pfExample.vfs;
  return Array.from({ length: count }, (_, at): Recorded => {
    const name = `host${String(at + 1).padStart(4, "0")}`;
    const rack = `r${String(Math.floor(at / RACK) + 1).padStart(2, "0")}`;
    const observed = { observed_at: AT, version: "0.2.0", pfs: RAILS, vfs: RAILS * VFS_PER_PF,
      free_vfs: RAILS * VFS_PER_PF - attached, attachments: attached, vms: 1 };
    return {
      host: fleetHost(name, { rack, observed, labels: { zone: at % 2 === 0 ? "a" : "b" } }),
      pfs: Array.from({ length: RAILS }, (__, rail) => ({
        ...pfOn(String(rail)),
        vfs: Array.from({ length: VFS_PER_PF }, (___, index) => ({ ...vf, index })),
      })),
      vms: [{ ...vmExample, name: `vm-of-${name}` }],
      attachments: Array.from({ length: attached }, (__, index) => held(
        (0x3f9c2b1d + index).toString(16), at % 10 === 0 ? "fail" : "pass",
        { vm: `vm-of-${name}` })),
    };
  });
}
