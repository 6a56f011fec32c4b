// SPDX-License-Identifier: Apache-2.0
// What the pages of a fleet show. Events say of which hosts lists are to be read again, and that a
// host is unreachable no event of it can say: hosts are read again now and then.
import { emptyFleetLog, withEvents, eventKey } from "../model/fleet_log";
import type { FleetLog } from "../model/fleet_log";
import { heldRowOf, pfRowOf, proofsOf, vmRowOf } from "../model/fleet_rows";
import type { HeldVf, PfOfFleet, Proofs, VmOfFleet } from "../model/fleet_rows";
import type { Frame } from "../model/sse";
import { dropOld } from "../model/log";
import type { FleetApi, FleetList } from "../transport/fleet";
import { problemIn } from "../transport/api";
import type { FleetEvent, FleetHost, OfHost } from "../transport/fleet_types";
import type { Attachment, Pf, VmInfo } from "../transport/types";
import { nowAndThen, thisFrame } from "./frames";
import { Part } from "./part";
import type { AnyPart, PartSource } from "./part";
import { Rows } from "./rows";
import type { Liveness } from "./stream";

export interface FleetStatus {
  liveness: Liveness;
}

export class FleetStore {
  readonly hosts: Part<FleetHost>;
  readonly pfs: Part<PfOfFleet>;
  readonly attachments: Part<HeldVf>;
  readonly vms: Part<VmOfFleet>;
  readonly proofs = new Rows<Proofs>(one => one.host);
  readonly lastEvents = new Rows<FleetEvent>(event => event.host);
  log: FleetLog = emptyFleetLog;
  readonly since = Date.now(); // events before it are the hosts' own to show
  status: FleetStatus = { liveness: { live: false, since: Date.now() } };

  private readonly statusListeners = new Set<() => void>();
  private readonly logListeners = new Set<() => void>();
  private readonly eventListeners = new Set<(event: FleetEvent) => void>();
  private incoming: FleetEvent[] = [];
  private lastSettled = 0;
  private readonly settle = (): void => {
    this.lastSettled = performance.now();
    this.log = withEvents(this.log, this.incoming);
    this.incoming = [];
    for (const listener of this.logListeners) listener();
  };

  constructor(readonly api: FleetApi) {
    const changed = (): void => this.tell();
    this.hosts = new Part<FleetHost>({
      all: take => api.each<FleetHost>("/v1/hosts", {}, take),
      of: async (name, take) => {
        const host = await orGone<FleetHost | null>(api.host(name), null);
        if (host !== null) take([host]);
        return [];
      },
    }, host => host.name, host => host.name, changed);
    this.pfs = new Part(listOf<OfHost<Pf>, PfOfFleet>(api, "/v1/pfs", pfRowOf),
      pf => `${pf.host} ${pf.pci}`, pf => pf.host, changed);
    this.attachments = new Part(this.counted(
      listOf<OfHost<Attachment>, HeldVf>(api, "/v1/attachments", heldRowOf)),
    one => `${one.host} ${one.id}`, one => one.host, changed);
    this.vms = new Part(listOf<OfHost<VmInfo>, VmOfFleet>(api, "/v1/vms", vmRowOf),
      vm => `${vm.host} ${vm.uuid}`, vm => vm.host, changed);
  }

  onStatus(listener: () => void): () => void {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  }

  onLog(listener: () => void): () => void {
    this.logListeners.add(listener);
    return () => this.logListeners.delete(listener);
  }

  onEvent(listener: (event: FleetEvent) => void): () => void {
    this.eventListeners.add(listener);
    return () => this.eventListeners.delete(listener);
  }

  onLiveness(liveness: Liveness): void {
    this.status = { ...this.status, liveness };
    this.tell();
  }

  onFrame(frame: Frame): void {
    if (frame.event === "current" || frame.event === "resync") {
      for (const part of this.parts()) part.everything();
    } else if (frame.event === "" && frame.data !== "") {
      this.onHostEvent(JSON.parse(frame.data) as FleetEvent);
    }
  }

  // Of what a page did itself.
  readAgain(host: string): void {
    for (const part of this.parts()) part.mark(host);
  }

  private parts(): readonly AnyPart[] {
    return [this.hosts, this.pfs, this.attachments, this.vms];
  }

  private onHostEvent(event: FleetEvent): void {
    if (this.log.keys.has(eventKey(event))) return; // it comes again after a resume
    this.incoming.push(event);
    dropOld(this.incoming);
    nowAndThen(this.settle, this.lastSettled);
    this.lastEvents.put(event);
    this.hosts.mark(event.host);
    if (event.kind === "vfmgrd_started") this.readAgain(event.host);
    if (event.pf !== null) this.pfs.mark(event.host);
    if (event.attachment !== null) this.attachments.mark(event.host);
    if (event.vm_uuid !== null && event.vm_uuid !== "") this.vms.mark(event.host);
    for (const listener of this.eventListeners) listener(event);
  }

  private tell(): void {
    this.status = { ...this.status };
    for (const listener of this.statusListeners) thisFrame(listener);
  }

  // What is proved of each host is counted as its attachments are read, and not by each cell.
  private counted(source: PartSource<HeldVf>): PartSource<HeldVf> {
    const byHost = (rows: readonly HeldVf[]): Map<string, HeldVf[]> => {
      const hosts = new Map<string, HeldVf[]>();
      for (const row of rows) {
        const those = hosts.get(row.host);
        if (those === undefined) hosts.set(row.host, [row]);
        else those.push(row);
      }
      return hosts;
    };
    return {
      all: async take => {
        const found: HeldVf[] = [];
        const stale = await source.all(rows => { found.push(...rows); });
        take(found);
        this.proofs.replace([...byHost(found)].map(([host, those]) => proofsOf(host, those)));
        return stale;
      },
      of: async (host, take) => {
        const found: HeldVf[] = [];
        const stale = await source.of(host, rows => { found.push(...rows); });
        take(found);
        this.proofs.put(proofsOf(host, found));
        return stale;
      },
    };
  }
}

function listOf<Item, Row>(api: FleetApi, list: FleetList, slim: (item: Item) => Row):
    PartSource<Row> {
  return {
    all: take => api.each<Item>(list, {}, items => take(items.map(slim))),
    of: (host, take) => orGone(
      api.each<Item>(list, { host }, items => take(items.map(slim))), []),
  };
}

// Of a host that has left the fleet there is nothing.
async function orGone<T>(answer: Promise<T>, nothing: T): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (problemIn(error).code === "not_found") return nothing;
    throw error;
  }
}
