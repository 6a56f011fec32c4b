// SPDX-License-Identifier: Apache-2.0
// Bodies of the API for the tests: those of api/examples, with what a test is about changed.
import attachmentExample from "../../../api/examples/attachment.json";
import eventExample from "../../../api/examples/event.json";
import operationExample from "../../../api/examples/operation.json";
import pfExample from "../../../api/examples/pf.json";
import vfExample from "../../../api/examples/vf.json";
import vmExample from "../../../api/examples/vm_info.json";
import type { FleetHost } from "../../../service/web/src/transport/fleet_types";
import type {
  Attachment, Event, Operation, Pf, PfRow, Vf, VmInfo,
} from "../../../service/web/src/transport/types";

export function vf(part: Partial<Vf>): Vf {
  return { ...vfExample as Vf, drift: [], ...part };
}

export function attachment(part: Partial<Attachment>): Attachment {
  return { ...attachmentExample as unknown as Attachment, ...part };
}

export function pf(part: Partial<PfRow>): PfRow {
  const { vfs: _, ...rest } = pfExample as unknown as Pf;
  return { ...rest, ...part };
}

export function vm(part: Partial<VmInfo>): VmInfo {
  return { ...vmExample as unknown as VmInfo, ...part };
}

export function event(part: Partial<Event>): Event {
  return { ...eventExample as Event, ...part };
}

export function operation(part: Partial<Operation>): Operation {
  return { ...operationExample as unknown as Operation, ...part };
}

export function fleetHost(name: string, part: Partial<FleetHost> = {}): FleetHost {
  return {
    name, url: `https://${name}.example:8470`, public_key: "ab".repeat(32), state: "active",
    reason: "", labels: {}, rack: null, cordoned: null, fenced: null,
    joined_at: "2026-01-31T11:00:00.000Z", joined_by: "token:0f1e2d3c", unreachable_since: null,
    unreachable_why: null,
    observed: {
      observed_at: "2026-01-31T12:00:00.000Z", version: "0.2.0", pfs: 2, vfs: 6, free_vfs: 2,
      attachments: 1, vms: 1,
    },
    ...part,
  };
}
