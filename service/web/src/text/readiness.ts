// SPDX-License-Identifier: Apache-2.0
import type { Result } from "../model/readiness";
import type { Remedy } from "../transport/types";
import { plural } from "./numbers";

export const readiness = {
  looked: "The host was looked at",
  kernel: (release: string) => `kernel ${release}`,
  again: "Run again",
  running: "Checking the host …",
  result: (result: Result) => ({
    failed: "failed", warning: "warning", unknown: "unknown", ok: "ok",
    not_applicable: "not applicable",
  })[result],
  results: "Results to show",
  filter: "Filter",
  shown: (shown: number, all: number) => `${shown} of ${plural(all, "finding")}`,
  allWell: "No check failed and none warns.",
  none: "No finding matches.",
  heading: (rule: string, subject: string) => `${rule} ${subject}`.trim(),
  soDo: (subjects: readonly string[]) => `The same holds for: ${subjects.join(", ")}`,
  because: "Remedy first what causes this:",
  remedy: "Remedy",
  drain: (holders: readonly string[]) => `First free the VFs of: ${holders.join(", ")}`,
  asRoot: "In a root shell:",
  radius: (radius: Remedy["blast_radius"]) => ({
    none: "Affects no running program.",
    netdev: "Affects: the traffic of one network interface stops for a moment.",
    host: "Affects: every VF and RDMA device of this host.",
    reboot: "Affects: everything on this host, which has to reboot.",
  })[radius],
  evidence: "What was read",
  copyCommand: (command: string) => `Copy the command ${command}`,
  copyAll: (count: number) => `Copy all ${plural(count, "command")}`,
  daemon: {
    title: "vfmgrd",
    asking: "Asking vfmgrd …",
    ready: "Ready: the host was observed, libvirt answers, and the store takes changes.",
    notReady: "Not ready",
    drift: (count: number) =>
      `${plural(count, "difference")} between what is desired and what is observed.`,
    noDrift: "The host is as desired.",
    store: "The store can't be written, so nothing can be changed.",
    storeRemedy: "Make room on its disk: df -h /var/lib/vfmgr; then: journalctl -u vfmgrd",
    libvirt: "libvirt does not answer: VMs are shown as they were last seen, and stay as they are.",
    libvirtRemedy: "On the host: systemctl status libvirtd virtqemud",
    unobserved: "vfmgrd has just started and has not observed this host yet.",
    unobservedRemedy: "Wait a moment. If it stays so, on the host: journalctl -u vfmgrd",
    pf: (name: string, reason: string) => `PF ${name} can't be read${reason && `: ${reason}`}`,
    pfRemedy: (pci: string) => `On the host: vfctl pf show ${pci}`,
    other: (name: string) => `In the way: ${name}`,
    otherRemedy: "On the host: journalctl -u vfmgrd",
  },
} as const;
