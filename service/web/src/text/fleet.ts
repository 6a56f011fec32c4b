// SPDX-License-Identifier: Apache-2.0
// Words of the pages of a fleet.
import type { Condition, Sums } from "../model/fleet";
import type { Link, Rail, RailBy } from "../model/fleet_rows";
import type { FleetHost } from "../transport/fleet_types";
import { count, plural } from "./numbers";

const conditions: Readonly<Record<Condition, string>> = {
  fenced: "fenced", quarantined: "quarantined", unreachable: "unreachable", leaving: "leaving",
  cordoned: "cordoned", joining: "joining", active: "active",
};

const figures = (host: FleetHost): string => {
  const { observed } = host;
  return observed === null ? "nothing observed yet"
    : `${observed.free_vfs} of ${plural(observed.vfs, "VF")} free\n`
      + `${plural(observed.attachments, "attachment")}, ${plural(observed.vms, "VM")}`;
};

export const fleet = {
  pages: {
    hosts: "Fleet", rails: "Rails", vfs: "VFs in use", vms: "VMs", events: "Events",
  },
  way: "Where this is",
  back: "Fleet",
  toHost: "Host",
  aboutHost: "In the fleet",
  reading: "Reading the fleet …",
  condition: (one: Condition) => conditions[one],
  noHosts: "No host has joined. On one of the fleet's admins: vfctl fleet token",
  noneMatches: "No host matches the filter.",
  racks: "Hosts by rack",
  rack: (name: string | null, hosts: number) =>
    `${name === null ? "No rack" : `Rack ${name}`} · ${plural(hosts, "host")}`,
  hint: "Tab leads to each rack, the arrow keys to its hosts, Enter to a host's pages.",
  sums: ({ hosts, vfs, free, attachments, vms, unobserved }: Sums, all: number) =>
    [hosts === all ? plural(hosts, "host") : `${count(hosts)} of ${plural(all, "host")}`,
      `${count(free)} of ${count(vfs)} VFs free`, `${count(attachments)} attachments`,
      `${count(vms)} VMs`, unobserved === 0 ? "" : `${count(unobserved)} not observed yet`]
      .filter(Boolean).join(" · "),
  counted: (counted: number, one: Condition) => `${counted} ${conditions[one]}`,
  figures,
  proofs: (proved: number, failed: number) => `${proved} proved, ${failed} failed`,
  unreachableSince: "unreachable since",
  filter: {
    title: "Filter", rack: "Rack", anyRack: "any", noRack: "none", label: "Label",
    labelHint: "key or key=value", condition: "Condition", anyCondition: "any", words: "Words",
    wordsHint: "name, address, reason …", host: "Host", hostHint: "all",
  },
  table: {
    summary: "The hosts as a table", caption: "Hosts of the fleet", host: "Host", rack: "Rack",
    condition: "Condition", why: "Why", since: "Unreachable since", free: "Free VFs", vfs: "VFs",
    attachments: "Attachments", vms: "VMs", proved: "Proved", failed: "Failed", labels: "Labels",
    version: "vfmgrd", observed: "Observed", event: "Last event",
  },
  lastEvent: (kind: string) => kind.replaceAll("_", " "),
  stale: {
    title: "What is shown may be old",
    about: (hosts: number) => `${plural(hosts, "host does", "hosts do")} not report now. What the `
      + "page shows of them is what they last reported:",
    since: "since",
    more: (hosts: number) => `and ${plural(hosts, "more host")}`,
    own: "the fleet's own records",
    column: "May be old since",
  },
  rails: {
    about: "PFs of all hosts, side by side: those with the same label rail, or of the same "
      + "network.",
    by: "Columns",
    bys: [
      ["label", "label rail"], ["network", "network"],
    ] as readonly (readonly [RailBy, string])[],
    name: (name: string | null) => name ?? "none",
    summary: "Rails", caption: "Rails of the fleet", matrix: "PFs by host and rail",
    rail: "Rail", hosts: "Hosts", up: "Links up", notUp: "Links not up", free: "Free VFs",
    vfs: "VFs", host: "Host", rack: "Rack",
    link: (link: Link) => link,
    pf: (ifname: string, link: Link, free: number, vfs: number) =>
      `${ifname} ${link}, ${free}/${vfs} free`,
    none: "No PF of a host is known.",
    only: "Only hosts with a link that is not up",
    sentence: ({ name, hosts, up, notUp }: Rail) =>
      `${name ?? "none"}: ${plural(hosts, "host")}, ${up} up, ${notUp} not up`,
  },
  vfs: {
    about: "Which VM holds which VF, on which host, and whether that is proved.",
    caption: "VFs in use on all hosts",
    table: {
      host: "Host", rack: "Rack", vf: "VF", vm: "VM", proved: "Proved", verdict: "Last verdict",
      verified: "Verified", network: "Network", address: "Address", mac: "MAC", state: "State",
      by: "Requested by", since: "Since",
    },
    proof: "Proof", anyProof: "any", proved: "proved", unproved: "not proved", failed: "failed",
  },
  vms: {
    caption: "VMs of all hosts, and other holders of their VFs",
    table: {
      vm: "VM", host: "Host", rack: "Rack", state: "State", held: "VFs", proved: "Proved",
      failed: "Failed", addresses: "Addresses",
    },
  },
  events: {
    about: "Events of all hosts as they come, newest first.",
    since: "Earlier ones are on each host's own page of events. This list begins",
    label: "Events of the fleet, newest first",
    count: (shown: number, all: number) =>
      shown === all ? plural(all, "event") : `${count(shown)} of ${plural(all, "event")}`,
    none: "Nothing has happened since then.",
    noneMatches: "No event matches the filter.",
    hold: "Hold", release: "Show new ones", more: "Show more",
    onHost: (host: string) => `on ${host}`,
  },
  host: {
    title: (host: string) => `${host} in the fleet`,
    gone: (host: string) => `The fleet has no host ${host}.`,
    facts: {
      condition: "Condition", rack: "Rack", labels: "Labels", url: "Address of its API",
      key: "SHA-256 of its key", joined: "Joined", version: "vfmgrd", observed: "Observed",
      vfs: "VFs", unreachable: "Unreachable since", why: "Why",
    },
    said: (what: string, by: string) => `${what} by ${by}`,
    notice: (host: string) => `${host} does not answer the fleet`,
    noticeAbout: "These pages ask the host itself, through the fleet. What the fleet last "
      + "observed is on the pages of the fleet. Unreachable since",
    hit: "Who is hit",
    hitNone: "No VM holds a VF of this host, as far as the fleet knows.",
    hitCaption: "VMs that hold VFs of this host",
    hitStale: "The host does not report now: this is what it last reported.",
    reading: "Reading what the host's VMs hold …",
    hitWhat: (vms: number, vfs: number) => `${plural(vms, "VM")} with ${plural(vfs, "VF")}`,
    notAdmin: (role: string) =>
      `Only an admin may do this. You are signed in with the role ${role}.`,
    lacks: "Give the evidence first: it is all that others can judge by.",
    leave: "Leave it", sending: "Sending …",
  },
  acts: {
    cordon: {
      begin: "Cordon …", title: "Cordon", act: (host: string) => `Cordon ${host}`,
      field: "Reason", hint: "why nothing new is to go there",
      means: (host: string) => [
        `Nothing new goes to ${host}: the fleet places no attachment, reservation or move there.`,
        "What runs there goes on. No VF is detached, and no VM is touched.",
        "Whoever asks the host itself can still attach there.",
      ],
      hit: "Nobody is hit now. These VMs stay as they are:",
    },
    uncordon: {
      begin: "Uncordon …", title: "Uncordon", act: (host: string) => `Uncordon ${host}`,
      field: "", hint: "",
      means: (host: string) => [`The fleet may place new things on ${host} again.`],
      hit: "Nobody is hit. These VMs stay as they are:",
    },
    fence: {
      begin: "Fence …", title: "Fence", act: (host: string) => `State that ${host} is off`,
      field: "Evidence", hint: "who or what switched it off, and how that is known",
      means: (host: string) => [
        `You state that ${host} is off. It switches nothing off, and the fleet can't check it.`,
        "MACs, GUIDs and addresses that the host holds may then be given to others.",
        "If the host still runs, two VMs can have the same MAC, GUID or address, and both fail in "
        + "ways that are hard to see.",
      ],
      hit: "These VMs must be off with the host. Others may get their identities:",
    },
    unfence: {
      begin: "Withdraw the fence …", title: "Withdraw the fence",
      act: (host: string) => `${host} is not off`, field: "", hint: "",
      means: (host: string) => [
        `You withdraw that ${host} is off. Identities that were given to others meanwhile stay `
        + "with them.",
      ],
      hit: "These VMs are the host's:",
    },
    confirm: {
      begin: "Confirm …", title: "Confirm what it reports",
      act: (host: string) => `Confirm ${host}`, field: "", hint: "",
      means: (host: string) => [
        `What ${host} reports contradicts what the fleet knows, so nothing new goes there.`,
        "You have looked at the reason above, and accept what the host reports.",
      ],
      hit: "These VMs stay as they are:",
    },
    expel: {
      begin: "Expel …", title: "Expel", act: (host: string) => `Expel ${host}`,
      field: "", hint: "",
      means: (host: string) => [
        `${host} leaves the fleet. It goes on by itself: its VMs keep their VFs.`,
        "The fleet no longer follows it and reaches none of its pages.",
        "Identities that it still holds stay taken until it has given them up, or is fenced.",
      ],
      hit: "The fleet no longer knows of these VMs:",
    },
  },
} as const;

export type FleetAct = keyof typeof fleet.acts;
