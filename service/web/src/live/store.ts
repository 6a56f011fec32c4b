// SPDX-License-Identifier: Apache-2.0
// What the pages show of the host. Lists are read once, when the place in the event stream is
// known, and events say which of their rows are to be read again.
import type { Frame } from "../model/sse";
import { vfKey } from "../model/cells";
import { problemIn } from "../transport/api";
import type { Api } from "../transport/api";
import type {
  Attachment, Event, HostTree, Operation, Pf, PfRow, Problem, Vf, VmInfo,
} from "../transport/types";
import { thisFrame } from "./frames";
import { Refresher } from "./refresh";
import { Rows } from "./rows";
import type { Liveness } from "./stream";

export type ListName = "pfs" | "vms" | "attachments" | "operations" | "topology";

const OPERATIONS_MAX = 100;
// After them an attachment is in the VF's history alone.
const ENDS: ReadonlySet<Event["kind"]> = new Set(["detached", "attach_failed"]);

export interface Status {
  liveness: Liveness;
  loaded: ReadonlySet<ListName>;
  problems: ReadonlyMap<ListName, Problem>;
}

export class Store {
  readonly pfs = new Rows<PfRow>(pf => pf.info.pci);
  readonly vfs = new Rows<Vf>(vf => vfKey(vf.pf, vf.index), vf => vf.pf);
  readonly vms = new Rows<VmInfo>(vm => vm.uuid);
  readonly attachments = new Rows<Attachment>(one => one.id, one => one.vm_uuid);
  readonly operations = new Rows<Operation>(operation => operation.id); // the newest ones
  readonly topology = new Rows<HostTree>(() => "");
  status: Status = {
    liveness: { live: false, since: Date.now() }, loaded: new Set(), problems: new Map(),
  };

  private readonly statusListeners = new Set<() => void>();
  private readonly eventListeners = new Set<(event: Event) => void>();
  private readonly refresher: Refresher<ListName | "vfs">;

  constructor(readonly api: Api) {
    this.refresher = new Refresher({
      pfs: { one: pci => this.readPf(pci), all: () => this.readPfs() },
      vfs: { one: key => this.readVf(key), all: () => this.readPfs() },
      vms: {
        one: uuid => this.readOne(this.vms, uuid, () => api.get("/v1/vms/{vm}", { vm: uuid })),
        all: async () => this.vms.replace(await api.list("/v1/vms")),
      },
      attachments: {
        one: id => this.readOne(this.attachments, id,
          () => api.get("/v1/attachments/{id}", { id })),
        all: async () => this.attachments.replace(await api.list("/v1/attachments")),
      },
      operations: {
        one: id => this.readOne(this.operations, id, () => api.get("/v1/operations/{id}", { id })),
        all: () => this.readOperations(),
      },
      topology: {
        one: () => this.readTopology(), all: () => this.readTopology(),
      },
    }, (name, error) => this.read(name, error));
  }

  onStatus(listener: () => void): () => void {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  }

  // Each event as it comes, for pages that show events or read what the store does not keep.
  onEvent(listener: (event: Event) => void): () => void {
    this.eventListeners.add(listener);
    return () => this.eventListeners.delete(listener);
  }

  onLiveness(liveness: Liveness): void {
    this.change({ liveness });
    // Without a stream the page still shows what there is, and since when it is not live.
    const { loaded, problems } = this.status;
    if (liveness.live ? problems.size > 0 : loaded.size === 0) this.refresher.everything();
  }

  onFrame(frame: Frame): void {
    if (frame.event === "current" || frame.event === "resync") {
      this.refresher.everything();
    } else if (frame.event === "" && frame.data !== "") {
      this.onHostEvent(JSON.parse(frame.data) as Event);
    }
  }

  // For what a page did itself and need not wait for an event of.
  readAgain(name: "vms" | "attachments" | "operations", key: string): void {
    this.refresher.mark(name, key);
  }

  private onHostEvent(event: Event): void {
    if (event.kind === "vfmgrd_started") this.refresher.everything();
    if (event.pf !== null && event.vf !== null)
      this.refresher.mark("vfs", vfKey(event.pf, event.vf));
    else if (event.pf !== null) this.refresher.mark("pfs", event.pf);
    // An operation is accepted before its attachment exists, and ends after it is gone; other
    // events say what became of it.
    if (event.attachment !== null && !event.kind.startsWith("operation_")) {
      if (ENDS.has(event.kind)) this.attachments.remove(event.attachment);
      else this.refresher.mark("attachments", event.attachment);
    }
    if (event.vm_uuid !== null && event.vm_uuid !== "") this.refresher.mark("vms", event.vm_uuid);
    if (event.operation !== null) this.refresher.mark("operations", event.operation);
    if (event.kind === "pf_here" || event.kind === "pf_gone") this.refresher.mark("topology", "");
    for (const listener of this.eventListeners) listener(event);
  }

  private change(part: Partial<Status>): void {
    this.status = { ...this.status, ...part };
    for (const listener of this.statusListeners) thisFrame(listener);
  }

  private read(name: ListName | "vfs", error: unknown): void {
    const list = name === "vfs" ? "pfs" : name;
    if (error === null && this.status.loaded.has(list) && !this.status.problems.has(list)) return;
    const problems = new Map(this.status.problems);
    if (error === null) problems.delete(list);
    else problems.set(list, problemIn(error));
    this.change({ problems, loaded: new Set([...this.status.loaded, list]) });
  }

  private async readOne<T>(rows: Rows<T>, key: string, question: () => Promise<T>): Promise<void> {
    try {
      rows.put(await question());
    } catch (error) {
      if (problemIn(error).code !== "not_found") throw error;
      rows.remove(key);
    }
  }

  private async readPfs(): Promise<void> {
    const pfs = await this.api.list("/v1/pfs");
    this.vfs.replace(pfs.flatMap(pf => pf.vfs));
    this.pfs.replace(pfs.map(withoutVfs));
  }

  private async readPf(pci: string): Promise<void> {
    await this.readOne(this.pfs, pci, async () => {
      const pf = await this.api.get("/v1/pfs/{pci}", { pci });
      this.vfs.replace(pf.vfs, key => key.startsWith(`${pci}/`));
      return withoutVfs(pf);
    });
  }

  private async readVf(key: string): Promise<void> {
    const [pci = "", index = ""] = key.split("/");
    await this.readOne(this.vfs, key,
      () => this.api.get("/v1/pfs/{pci}/vfs/{index}", { pci, index }));
  }

  private async readOperations(): Promise<void> {
    const page = await this.api.get("/v1/operations", {}, { limit: OPERATIONS_MAX });
    this.operations.replace(page.items);
  }

  private async readTopology(): Promise<void> {
    this.topology.put(await this.api.get("/v1/host/topology"));
  }
}

function withoutVfs({ vfs: _, ...rest }: Pf): PfRow {
  return rest;
}
