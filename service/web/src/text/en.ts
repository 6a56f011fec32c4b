// SPDX-License-Identifier: Apache-2.0
// Every word of the console that a person reads, in English; the larger pages have theirs in files
// beside it. A translation is other files like these.
import type { Age } from "../model/time";
import type { CellState, Counts } from "../model/cells";
import type { Headline } from "../model/figures";
import type {
  Attachment, Certificate, Operation, PfRow, Verdict, Vf, VmInfo,
} from "../transport/types";
import { cockpit } from "./cockpit";
import { events } from "./events";
import { fleet } from "./fleet";
import { bandwidth, number, plural } from "./numbers";
import { readiness } from "./readiness";
import { settings } from "./settings";
import { verification } from "./verification";

export const text = {
  product: "vfmgr",
  never: "never",
  notReported: "not reported",
  none: "none",
  yesNo: (value: boolean) => value ? "yes" : "no",
  ago: ({ unit, count }: Age) => `${plural(count, unit)} ago`,
  pages: {
    host: "Host",
    vms: "VMs",
    verification: "Verification",
    events: "Events",
    readiness: "Readiness",
    settings: "Settings",
    unknown: "No such page",
    unknownDetail: (hash: string) => `The console has no page ${hash}.`,
  },
  frame: {
    skip: "Skip to the page",
    navigation: "Pages",
    signedIn: (who: string, role: string) => `${who}, ${role}`,
    signOut: "Sign out",
    live: "live",
    notLive: "not live since",
    reading: "Reading the host …",
    asking: "Asking what serves this page …",
    theme: { label: "Colours", auto: "as the system", light: "light", dark: "dark" },
  },
  signIn: {
    title: "Sign in to vfmgr",
    token: "Token",
    tokenHelp: "An admin makes one with: vfctl token create --role viewer",
    withToken: "Sign in",
    withCertificate: "Sign in without a token",
    certificateHelp:
      "Works with a client certificate in this browser, or over a tunnel to the unix socket.",
    waiting: "Signing in …",
    asking: "Looking for a session in other tabs …",
    over: "The session has ended. Sign in again.",
  },
  problem: {
    remedy: "What to do:",
    again: "Try again",
    request: (id: string) => `Request ${id}`,
    unreachableTitle: "vfmgrd does not answer",
    unreachable: "The browser could not reach vfmgrd.",
    unreachableRemedy: "Check the network, and on the host: systemctl status vfmgrd.service",
    notUnderstood: (status: number) => `The answer has status ${status} and no explanation.`,
    notUnderstoodRemedy: "Check for a proxy between the browser and vfmgrd.",
    inPage: (what: string) => `The page failed: ${what}`,
    inPageRemedy: "Reload the page.",
  },
  plan: {
    title: "Plan",
    waiting: "Planning …",
    nothing: "Nothing is left to do.",
    affected: "Affected",
    nobody: "Nobody else is affected.",
  },
  confirm: {
    type: (name: string) => `Type ${name} to confirm`,
  },
  operation: {
    title: (kind: Operation["kind"]) => kind.replaceAll("_", " "),
    state: (state: Operation["state"]) => ({
      queued: "queued", running: "running …", succeeded: "succeeded", failed: "failed",
    })[state],
    step: (state: Operation["steps"][number]["state"]) => ({
      planned: "to do", intended: "now", done: "done", failed: "failed", undone: "undone",
    })[state],
    sending: "Sending the request …",
    done: "Done.",
  },
  table: {
    filter: "Filter",
    count: (shown: number, all: number) =>
      shown === all ? plural(all, "row") : `${shown} of ${plural(all, "row")}`,
    copyAs: (format: string) => `Copy ${format}`,
    copied: (rows: number, format: string) => `Copied ${plural(rows, "row")} as ${format}.`,
    notCopied: "The browser did not allow copying.",
    empty: "There are none.",
    none: "No row matches the filter.",
    more: (rows: number) => `Show ${plural(rows, "more row")}`,
  },
  cell: {
    state: (state: CellState): string => ({
      free: "free",
      reserved: "reserved",
      proved: "attached and proved",
      unproved: "attached, not proved",
      drifted: "drifted",
      quarantined: "quarantined",
      in_use: "in use by others",
      stuck: "stuck",
    })[state],
  },
  host: {
    picture: "NUMA nodes, the PCIe tree, NICs with their VFs, GPUs, and VMs with what they hold",
    legend: "States of VFs",
    hint: "Point at a VF, or reach it with Tab and the arrow keys. Enter leads to it.",
    noPfs: "This host has no SR-IOV capable network device. See: vfctl doctor",
    differences: "Differences and trouble of PFs",
    vms: (count: number) => plural(count, "VM"),
    numa: (node: number | null) => node === null ? "NUMA node not reported" : `NUMA node ${node}`,
    bridge: (addresses: readonly string[]) => addresses.join(" › "),
    card: (address: string) => `NIC ${address}`,
    gpu: (address: string, distance: string | null, pf: string | null) =>
      `GPU ${address}${pf === null ? "" : ` · ${distance ?? ""} to ${pf}`}`,
    port: ({ info }: PfRow) => [info.ifname === "" ? info.pci : info.ifname, info.device_name,
      info.carrier ? "link up" : info.up ? "no carrier" : "down"].filter(Boolean).join(" · "),
    counts: (counts: Counts, all: number) =>
      `${plural(all, "VF")}, ${counts.free} free, ${counts.proved} proved`,
    vf: (index: number, state: CellState, vm: string | null) =>
      `VF ${index}, ${text.cell.state(state)}${vm === null ? "" : `, ${vm}`}`,
    vm: (name: string, state: VmInfo["state"], held: number, proved: number) =>
      `${name} · ${held === 0 ? "no VF" : `${proved}/${held} proved`}`
      + (state === "running" ? "" : ` · ${text.vmState(state)}`),
    described: (ifname: string, vf: Vf, state: CellState, address: string | null) =>
      [`VF ${vf.index} of ${ifname} (${vf.pci})`, text.cell.state(state), vf.vm, address]
        .filter(Boolean).join(" · "),
    table: {
      summary: "The VFs as a table", caption: "VFs of this host", vf: "VF", pf: "PF",
      state: "State", vm: "VM", network: "Network", address: "Address", mac: "MAC",
      driver: "Driver", why: "Why",
    },
  },
  vms: {
    table: {
      caption: "VMs of this host, and other holders of its VFs", vm: "VM", state: "State",
      vfs: "VFs", proved: "Proved", addresses: "Addresses", verdict: "Last verdict",
      verifiedAt: "Verified",
    },
    gone: (name: string) => `libvirt knows no VM ${name}, and no holder of a VF has that name.`,
    holds: "What it holds",
    holdsNothing: "No VF is attached.",
    provedOf: (proved: number, all: number) => `${proved} of ${plural(all, "VF")}`,
    facts: {
      state: "State", proved: "Proved", uuid: "UUID", ports: "Free PCIe ports",
      vsock: "vsock device", metadata: "Metadata that can't be read",
    },
    vfOf: (index: number, pf: string) => `VF ${index} of ${pf}`,
    vfGone: (index: number) => `VF ${index} no longer exists on the host.`,
    attachment: {
      address: "Address", network: "Network", mac: "MAC", vlan: "VLAN", driver: "Driver",
      state: "State", id: "Attachment", by: "Requested by", since: "Since",
    },
    attachmentState: ({ state, live, config }: Attachment) =>
      [state, live ? "in the running VM" : "", config ? "in its persistent XML" : ""]
        .filter(Boolean).join(", "),
    figures: ({ bandwidthMbps, achievedPercent, latencyP50Us, latencyP99Us }: Headline) => [
      bandwidthMbps === null ? "" : text.unit.bandwidth(bandwidthMbps),
      achievedPercent === null ? "" : `${number(achievedPercent)} % of what the path can carry`,
      latencyP50Us === null ? "" : `${number(latencyP50Us)} µs (median)`,
      latencyP99Us === null ? "" : `${number(latencyP99Us)} µs (99 %)`,
    ].filter(Boolean).join(" · "),
    path: (path: "internal_switch" | "wire") =>
      path === "wire" ? "over the wire" : "over the NIC's internal switch",
    attachBegin: "Attach a VF …",
    detachBegin: (index: number) => `Detach VF ${index} …`,
    detachAllBegin: (count: number) => `Detach ${plural(count, "VF")} …`,
    detachWhat: (indexes: readonly (number | null)[], vm: string) =>
      indexes.length === 1 && indexes[0] !== null ? `Detach VF ${indexes[0]} from ${vm}`
        : `Detach ${plural(indexes.length, "VF")} from ${vm}`,
    clean: ({ vf, observed_at }: Certificate) =>
      `VF ${vf.index} of ${vf.pf} was reset and verified clean at ${observed_at}.`,
    leave: "Leave it",
    close: "Close",
    attach: {
      title: (vm: string) => `Attach a VF to ${vm}`,
      act: (vm: string) => `Attach to ${vm}`,
      ask: "Show the plan",
      chooseFirst: "Choose a network, a pool or a PF, or a VF near the VM's GPU.",
      network: "Network", noNetwork: "none, or the pool's",
      pool: "Pool", noPool: "none",
      pf: "PF", anyPf: "the best one",
      address: "Address", addressHint: "the first free one",
      near: "Near the VM's GPU",
      verify: "Verification",
      verifyOptions: [
        ["required", "required: without a proof it is undone"],
        ["background", "in the background"],
        ["none", "none"],
      ],
      persistence: "Persistence",
      persistenceOptions: [
        ["auto", "the running VM and its persistent XML"],
        ["live", "the running VM only"],
        ["config", "from its next start on"],
      ],
    },
  },
  cockpit,
  verification,
  events,
  readiness,
  settings,
  fleet,
  copy: { act: "Copy", done: "Copied.", failed: "The browser did not allow copying." },
  unit: {
    bandwidth,
  },
  vmState: (state: VmInfo["state"] | "external"): string => ({
    running: "running", paused: "paused", shut_off: "shut off", other: "in another state",
    external: "not a VM of libvirt",
  })[state],
  notVerified: "not verified",
  verdict: (verdict: Verdict) => ({
    pass: "passed", fail: "failed", skip: "skipped", not_applicable: "not applicable",
    pending: "running",
  })[verdict],
} as const;
