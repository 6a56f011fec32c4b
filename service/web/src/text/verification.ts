// SPDX-License-Identifier: Apache-2.0
// Words of the page Verification.
import type { Difference } from "../model/changes";
import type { Absent, Expectation, WhyNot } from "../model/runs";
import type { Named } from "../model/units";
import { bandwidth, count, duration, number, plural } from "./numbers";

const units = {
  mbps: bandwidth,
  mib_per_s: (value: number) => `${number(value)}\u00a0MiB/s`,
  per_s: (value: number) => `${number(value)}\u00a0per s`,
  us: (value: number) => `${number(value)}\u00a0µs`,
  percent: (value: number) => `${number(value)}\u00a0%`,
  bytes: (value: number) => `${count(value)}\u00a0bytes`,
  count,
} as const;

const stems: Readonly<Record<string, string>> = {
  p50: "median", p90: "90 %", p99: "99 %", p999: "99.9 %", mtu: "MTU", largest_mtu: "largest MTU",
};

const whyNoExpectation: Readonly<Record<WhyNot, string>> = {
  proof: "this test proves that bytes arrive, so its rate is not compared",
  not_passed: "the test did not pass",
  short: "with messages this short, their number is the limit",
  path_unknown: "the host knows no limit of the path",
};

const testName = (name: string): string => name.replaceAll("_", " ");

export const verification = {
  stem: (stem: string) => stems[stem] ?? stem.replaceAll("_", " "),
  value: ({ unit }: Named, value: number) => units[unit](value),
  test: testName,
  list: {
    intro: "Attachments with their last verification. A VF's own page has those of its former "
      + "attachments, too.",
    caption: "Attachments by their last verification", vf: "VF", vm: "VM", verdict: "Verdict",
    when: "Verified", bandwidth: "Bandwidth", latency: "Latency (median)", losses: "Losses",
    warnings: "Warnings",
  },
  badLink: "A link to this page names a PF and a VF, or an attachment.",
  reading: "Reading the verifications …",
  titleVf: (index: number | string, pf: string) => `Verification of VF ${index} of ${pf}`,
  titleAttachment: (id: string) => `Verification of attachment ${id}`,
  all: "All verifications of this VF",
  vm: "VM", vf: "VF",
  attachedTo: "Attached to",
  free: "The VF is not attached, so nothing can be verified. Its earlier verifications are below.",
  gone: (id: string) => `Attachment ${id} has ended. Its verifications are kept for 30 days.`,
  certificate: "Certificate of its end",
  never: "It has not been verified.",
  noneKept: "The host keeps no verification of it.",
  now: {
    begin: "Verify now …", title: "Verify now", act: (vm: string) => `Verify RDMA in ${vm}`,
    ask: "Show the plan",
    profile: "Tests",
    profiles: [
      ["quick", "quick: the proofs, every byte checked"],
      ["default", "default: also bandwidth and latency"],
      ["deep", "deep: for longer, both directions, several queue pairs, GPUDirect"],
    ],
    timeout: "Seconds to wait for the VM", timeoutHint: "120",
    responder: "Another host's responder",
    responderHelp: "Then the traffic leaves the NIC. That host runs: vf-guest serve",
    host: "Name or address", hostHint: "this host's responder",
    port: "Port", portHint: "8473", fingerprint: "SHA-256 of its certificate", token: "Its token",
    needs: "Another host's responder needs its fingerprint and its token.",
  },
  run: {
    latest: "Latest verification", chosen: "Verification",
    running: "It is running. The verdict appears here.",
    started: "Started", took: "Took", path: "Path", responder: "Responder", gid: "Peer GID",
    mac: "MAC of the VF", guid: "Port GUID of the VF", dscp: "DSCP", run: "Run",
    attachment: "Attachment",
    thisHost: "this host's", unknownPath: "unknown",
    duration, notEnded: "has not ended",
    reasons: "Why", reason: "The verdict", warning: "Warning", failed: (name: string) =>
      `${testName(name)} failed`,
    remedy: "What to do:",
    well: "Every test that applies has passed, without a warning.",
  },
  losses: {
    title: "Losses",
    unknown: "The run has no record of losses.",
    none: "No counter of lost packets grew during the run, on the host or in the VM.",
    side: { host: "Host's side", guest: "VM's side, as the VM reports it" },
    counter: (lost: number, name: string, device: string, source: string) =>
      `${plural(lost, "packet")} · ${name} of ${device} (${source})`,
  },
  expected: {
    title: "What can be expected",
    none: "No test of this run reports a bandwidth. The profiles default and deep measure it.",
    given: (one: Extract<Expectation, { is: "given" }>) =>
      `${bandwidth(one.bandwidthMbps)} of ${bandwidth(one.achievableMbps)}, `
      + `${number(one.percent)} % of what the path can carry`,
    absent: (one: Extract<Expectation, { is: "absent" }>) =>
      `${bandwidth(one.bandwidthMbps)}; no expectation: ${whyNoExpectation[one.why]}`,
    bar: (test: string, percent: number) => `${test}: ${number(percent)} % of the path`,
  },
  gpudirect: {
    title: "GPUDirect",
    absent: "Not tested. The profile deep tests it, in a VM with a GPU.",
    noDetail: "The VM gave no reason.",
  },
  latency: {
    title: "Latency",
    none: "No test of this run reports a latency.",
    help: "Each bar spans two percentiles. Its area is the share of the messages between them.",
    few: "Of these the run reports too few percentiles for a histogram.",
    band: (from: number, to: number, percent: number) =>
      `${number(percent)} % of the messages: ${number(from)} to ${number(to)} µs`,
    picture: (test: string) => `Histogram of ${test}`,
    tick: (us: number) => us >= 1000 ? `${number(us / 1000)} ms` : `${number(us)} µs`,
  },
  checks: {
    title: "Each check", caption: "Tests of this run", name: "Test", verdict: "Verdict",
    by: "Judged by", checked: "Bytes checked", wrong: "Bytes that differ", figures: "Figures",
    detail: "Detail", remedy: "What to do",
    judge: { host: "the host", guest: "the VM" },
    absent: (why: Absent) => ({
      fail: "none: it failed", skip: "none: it was skipped", pending: "not yet",
      not_applicable: "none: it does not apply", measures_none: "it measures none",
    })[why],
  },
  trend: {
    bandwidth: "Bandwidth over time", latency: "Latency over time",
    few: (runs: number) => runs === 0 ? "No run reports this figure."
      : "One run reports this figure. A line needs two.",
    line: (test: string, figure: string) => figure === "bandwidth_mbps" ? testName(test)
      : figure === "achievable_mbps" ? `${testName(test)}, path`
        : `${testName(test)}, ${figure === "p50_us" ? "median" : "99 %"}`,
    time: "Time", mbps: "Mbit/s", us: "µs",
    label: (what: string, runs: number) =>
      `${what}, ${plural(runs, "verification")}. The table of verifications has the same figures.`,
  },
  link: { up: "up", down: "no carrier" },
  runs: {
    title: "Verifications", caption: "Verifications that are kept, newest first",
    started: "Started", verdict: "Verdict", bandwidth: "Best bandwidth", expected: "Of the path",
    latency: "Median", latency99: "99 %", losses: "Packets lost", warnings: "Warnings",
    path: "Path", attachment: "Attachment", run: "Run",
  },
  changes: {
    title: "What changed between verifications",
    notRecorded: "A run does not record the versions of driver, firmware and kernel. "
      + "What vfmgr saw change is below; what the VF has now is here.",
    none: "Nothing that vfmgr sees changed before this one.",
    first: "The oldest one that is kept.",
    before: "Before the verification of",
    more: "Show earlier ones",
    older: "Read older events",
    unread: "Events before this one are not read yet.",
    what: (what: Difference["what"], test: string | null) => {
      const words: Readonly<Record<Difference["what"], string>> = {
        attachment: "attachment", path: "path", responder: "responder", peer_gid: "peer GID",
        vf_mac: "MAC of the VF", vf_guid: "port GUID of the VF", dscp: "DSCP",
        achievable_mbps: "what the path can carry, Mbit/s", message_bytes: "bytes per message",
        queue_pairs: "queue pairs", mtu_bytes: "MTU", tests_gone: "tests that it lacks",
        tests_new: "tests that are new",
      };
      return test === null ? words[what] : `${testName(test)}: ${words[what]}`;
    },
    value: (value: string | number | null) => value === null ? "not reported"
      : typeof value === "number" ? number(value) : value,
    now: {
      device: "NIC", driver: "Driver of the PF", vfDriver: "Driver of the VF", link: "Link",
      mtu: "MTU of the PF", numa: "NUMA node", near: "GPU", pci: "PCI address",
    },
  },
} as const;
