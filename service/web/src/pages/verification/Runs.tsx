// SPDX-License-Identifier: Apache-2.0
// All runs that are kept; each row leads to its run on this page.
import { headline } from "../../model/figures";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { VerdictMark } from "../../parts/VerdictMark";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Verification } from "../../transport/types";

const words = text.verification.runs;
const us = (value: number | null) => value === null ? text.notReported
  : text.verification.value({ stem: "", unit: "us" }, value);

export const lostOf = (run: Verification): number | null =>
  run.losses === undefined ? null : run.losses.reduce((all, { counter }) => all + counter.count, 0);

const columns: readonly ShownColumn<Verification>[] = [
  { name: "started_at", title: words.started, value: run => run.started_at,
    shown: run => <When at={run.started_at} /> },
  { name: "verdict", title: words.verdict, value: run => run.verdict,
    shown: run => <VerdictMark verdict={run.verdict} /> },
  { name: "bandwidth_mbps", title: words.bandwidth, value: run => headline(run).bandwidthMbps,
    shown: run => {
      const { bandwidthMbps } = headline(run);
      return bandwidthMbps === null ? text.notReported : text.unit.bandwidth(bandwidthMbps);
    } },
  { name: "achieved_percent", title: words.expected, value: run => headline(run).achievedPercent,
    shown: run => {
      const { achievedPercent } = headline(run);
      return achievedPercent === null ? text.notReported
        : text.verification.value({ stem: "", unit: "percent" }, achievedPercent);
    } },
  { name: "latency_p50_us", title: words.latency, value: run => headline(run).latencyP50Us,
    shown: run => us(headline(run).latencyP50Us) },
  { name: "latency_p99_us", title: words.latency99, value: run => headline(run).latencyP99Us,
    shown: run => us(headline(run).latencyP99Us) },
  { name: "lost", title: words.losses, value: lostOf },
  { name: "warnings", title: words.warnings, value: run => run.warnings?.length ?? null },
  { name: "path", title: words.path,
    value: run => run.path === null ? null : text.vms.path(run.path) },
  { name: "attachment", title: words.attachment, value: run => run.attachment },
];

export function Runs({ runs, here }: { runs: readonly Verification[]; here: string }) {
  return (
    <section>
      <h2>{words.title}</h2>
      <Table caption={words.caption} items={runs} columns={columns} keyOf={run => run.run}
             href={run => `${here}?run=${encodeURIComponent(run.run)}`}
             order={{ column: "started_at", descending: true }} />
    </section>
  );
}
