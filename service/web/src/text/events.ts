// SPDX-License-Identifier: Apache-2.0
// Words of the page Events.
import type { Severity, Topic } from "../model/events";
import type { Certificate, Operation, Span } from "../transport/types";
import { count, duration, plural } from "./numbers";

export const events = {
  kind: (kind: string) => kind.replaceAll("_", " "),
  severity: (severity: Severity) => ({
    trouble: "trouble", attention: "needs attention", normal: "normal",
  })[severity],
  filter: {
    title: "Filter",
    severity: "Severity", anySeverity: "any",
    atLeast: { trouble: "trouble", attention: "trouble, needs attention", normal: "any" },
    topic: "About", anyTopic: "everything",
    topics: {
      operations: "operations", attachments: "attachments", verifications: "verifications",
      drift: "drift", pfs: "PFs", configuration: "networks, pools, RDMA links", vms: "VMs",
      access: "tokens and tenants", host: "the host and vfmgrd",
    } satisfies Record<Topic, string>,
    words: "Words", wordsHint: "VM, PF, attachment, kind …",
  },
  hold: "Hold",
  holdHelp: "New events wait until they are shown.",
  release: (waiting: number) => `Show ${plural(waiting, "new event")}`,
  reading: "Reading events …",
  count: (shown: number, all: number) =>
    shown === all ? plural(all, "entry", "entries")
      : `${count(shown)} of ${plural(all, "entry", "entries")}`,
  older: "Show older",
  none: "No event is kept.",
  noneMatches: "No entry that is read matches the filter.",
  complete: "The host keeps no older events. A VF's verification page may have some, of that VF.",
  most: (events_: number) => `The page keeps the newest ${count(events_)} events.`,
  label: "Events and operations, newest first",
  because: (number_: number) => `Because of event ${number_}`,
  then: "Then",
  vf: (index: number, pf: string) => `VF ${index} of ${pf}`,
  pf: (pf: string) => `PF ${pf}`,
  vm: (vm: string) => `VM ${vm}`,
  attachment: (id: string) => `attachment ${id}`,
  others: {
    network: "network", pool: "pool", reservation: "reservation", tenant: "tenant", token: "token",
    rdma_link: "RDMA link",
  },
  certificateLink: "certificate",
  operationLine: (operation: Operation, took: number | null) =>
    `${operation.state}${took === null ? "" : ` in ${duration(took)}`}, `
    + `requested by ${operation.requested_by}`,
  unknownOperation: (id: string) => `operation ${id}`,
  operation: {
    title: (kind: string) => `Operation: ${kind.replaceAll("_", " ")}`,
    reading: "Reading the operation …",
    facts: {
      id: "Operation", state: "State", subject: "Subject", by: "Requested by", request: "Request",
      created: "Accepted", finished: "Ended", took: "Took", vm: "VM",
    },
    duration,
    running: "it runs", noRequest: "none: vfmgrd began it",
    noVm: "none",
    steps: "Steps", noSteps: "The API gives no steps of this operation.",
    spans: "What its time went to",
    noSpans: "The API has the times of an operation once it has ended. Of this one it has none.",
    spansRunning: "The times are there once the operation has ended.",
    spanCaption: "Parts of the operation's time, in order",
    span: { kind: "Kind", what: "What", began: "Began after", took: "Took", bar: "When" },
    spanKind: (kind: Span["kind"]) => ({
      claim: "waiting for other operations", observe: "observing", plan: "planning",
      commit: "storing", step: "step", undo: "undoing", guest: "waiting for the VM",
    })[kind],
    spanBar: (began: number, took: number) =>
      `from ${duration(began / 1000)} on, for ${duration(took / 1000)}`,
    us: (us: number) => duration(us / 1000),
    other: (us: number, whole: number) =>
      `${duration(us / 1000)} of ${duration(whole / 1000)} went to other code.`,
    toTimeline: "Show it in the timeline",
    certificate: "Certificate",
  },
  cancel: {
    begin: "Cancel …",
    title: "Cancel the operation",
    what: "It stops where nothing is left half done, undoes the steps that it did, and fails with "
      + "the problem “cancelled”. Past its last step it succeeds all the same.",
    act: (kind: string, id: string) => `Cancel ${kind.replaceAll("_", " ")} ${id}`,
    sending: "Cancelling …",
    sent: "It is to stop. Its state above says when it has.",
    not: (kind: string) => `This operation (${kind.replaceAll("_", " ")}) can't be cancelled: what `
      + "it has begun must be ended.",
  },
  certificate: {
    title: "Certificate",
    heading: (certificate: Certificate) =>
      `VF ${certificate.vf.index} of ${certificate.vf.pf} is clean`,
    lead: "What the host observed of the VF after its attachment had ended: reset, every attached "
      + "setting at its baseline again, none of the VM's addresses left, held open by no process.",
    reading: "Reading the certificate …",
    print: "Print",
    facts: {
      vf: "VF", pci: "PCI address", attachment: "Attachment", vm: "VM",
      attached: "Attached", attachedBy: "Attached by", attachedIn: "In operation",
      detached: "Detached", detachedBy: "Detached by", detachedIn: "In operation",
      reset: "Reset", resetDone: "Reset done", observed: "Verified clean", driver: "Driver now",
    },
    method: (method: string) => method.toUpperCase(),
    unbound: "unbound",
    notRecorded: "not recorded by an earlier vfmgr",
    settings: "Settings", setting: "Setting", before: "Before the detach", now: "Now",
    addresses: "Addresses", address: "Address", attachedAddress: "While attached",
    sameAddress: "The attachment set no address that differs from the VF's own.",
    counters: "Counters", counter: "Counter", beforeReset: "Before the reset",
    noCounters: "The PF's driver counts nothing for its VFs.",
    value: (value: string | null | undefined) => value === null ? "not reported"
      : value === undefined ? "not set by the attachment"
      : /^\d+$/.test(value) ? count(Number(value)) : value,
    name: (name: string) => name.replaceAll("_", " "),
  },
} as const;
