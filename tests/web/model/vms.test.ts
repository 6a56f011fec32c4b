// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  choosesVf, emptyForm, formOf, queryOf, specOf,
} from "../../../service/web/src/model/attach";
import { headline, remarks } from "../../../service/web/src/model/figures";
import { vmRows } from "../../../service/web/src/model/vms";
import type { Verdict, Verification } from "../../../service/web/src/transport/types";
import { attachment, vm } from "./bodies";

const run = attachment({}).verification!;
const held = (id: string, vm_uuid: string, verdict: Verdict | null,
              part: Partial<Verification> = {}) =>
  attachment({
    id, vm_uuid, vm: vm_uuid === "" ? "qemu-by-hand" : "vm1", state: "attached",
    verification: verdict === null ? null : { ...run, verdict, ...part },
  });

test("a VM has the worst verdict and the oldest proof of what it holds", () => {
  const [row] = vmRows([vm({ uuid: "u1", name: "vm1" })], [
    held("00000001", "u1", "pass", { finished_at: "2026-01-31T12:00:00.000Z" }),
    held("00000002", "u1", "fail", { finished_at: "2026-01-30T12:00:00.000Z" }),
    held("00000003", "u1", null), held("00000004", "other", "pass"),
  ]);
  assert.equal(row?.attachments.length, 3);
  assert.equal(row.proved, 1);
  assert.equal(row.worst, "fail");
  assert.equal(row.verifiedAt, "2026-01-30T12:00:00.000Z");
});

test("what a VM holds is in the order of its VFs", () => {
  const at = (pf: string, index: number) => ({ ...held(`${pf}${index}`, "u1", null),
    vf: { pf, index } });
  const [row] = vmRows([vm({ uuid: "u1", name: "vm1" })], [at("b", 10), at("b", 9), at("a", 11)]);
  assert.deepEqual(row?.attachments.map(({ id }) => id), ["a11", "b9", "b10"]);
});

test("a holder that libvirt does not run is a row of its own", () => {
  const rows = vmRows([vm({ uuid: "u1", name: "vm1" })],
    [held("00000001", "", "pass"), held("00000002", "", null)]);
  assert.deepEqual(rows.map(({ name, uuid, state, attachments }) =>
    [name, uuid, state, attachments.length]),
  [["vm1", "u1", vm({}).state, 0], ["qemu-by-hand", null, "external", 2]]);
});

test("the headline has the best bandwidth and the latency of a write", () => {
  const test_ = (name: string, figures: Record<string, number>) =>
    ({ name, verdict: "pass" as const, by: "host" as const, figures });
  assert.deepEqual(headline({ ...run, tests: [
    test_("rdma_write", { bandwidth_mbps: 100 }),
    test_("write_bandwidth", { bandwidth_mbps: 900, achieved_percent: 91 }),
    test_("rc_ping", { p50_us: 9 }), test_("write_latency", { p50_us: 2, p99_us: 3 }),
  ] }), { bandwidthMbps: 900, achievedPercent: 91, latencyP50Us: 2, latencyP99Us: 3 });
  assert.deepEqual(headline({ ...run, tests: [] }),
    { bandwidthMbps: null, achievedPercent: null, latencyP50Us: null, latencyP99Us: null });
});

test("a failed test, a loss and a warning are remarks, a passed test is none", () => {
  const remedied = { detail: "rx_dropped grew by 3", remedy: "raise the ring" };
  const counter = { source: "netdev" as const, device: "ens1", name: "rx_dropped", count: 3 };
  assert.deepEqual(remarks({
    ...run, detail: "", warnings: [{ test: "", ...remedied }],
    losses: [{ side: "host", counter, ...remedied }],
    tests: [{ name: "rc_ping", verdict: "fail", by: "host", detail: "no answer", remedy: "x" },
      { name: "rdma_read", verdict: "pass", by: "host" }],
  }), [{ detail: "rc_ping: no answer", remedy: "x" }, remedied, remedied]);
});

test("a form survives a reload, and only what is given is asked for", () => {
  const form = { ...emptyForm, network: "train", address: " 10.0.0.7 ", near: true,
    verify: "none" as const };
  assert.deepEqual(formOf(new Map(Object.entries(queryOf(form)))), form);
  assert.deepEqual(specOf("vm1", form),
    { vm: "vm1", verify: "none", network: "train", address: "10.0.0.7", near: "gpu" });
  assert.deepEqual(queryOf(emptyForm), {});
  assert.equal(choosesVf(emptyForm), false);
  assert.equal(choosesVf(form), true);
  assert.equal(formOf(new Map([["verify", "<b>"]])).verify, emptyForm.verify);
});
