// SPDX-License-Identifier: Apache-2.0
// Each test of a run with every figure that it has.
import { whyNoFigures } from "../../model/runs";
import { namedFigure } from "../../model/units";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { VerdictMark } from "../../parts/VerdictMark";
import { text } from "../../text/en";
import type { TestResult, Verification } from "../../transport/types";

const words = text.verification.checks;

function figuresText(test: TestResult): string {
  const absent = whyNoFigures(test);
  if (absent !== null) return words.absent(absent);
  return Object.entries(test.figures ?? {}).map(([name, value]) => {
    const named = namedFigure(name);
    return `${text.verification.stem(named.stem)} ${text.verification.value(named, value)}`;
  }).join(" · ");
}

const columns: readonly ShownColumn<TestResult>[] = [
  { name: "test", title: words.name, value: test => test.name,
    shown: test => text.verification.test(test.name) },
  { name: "verdict", title: words.verdict, value: test => test.verdict,
    shown: test => <VerdictMark verdict={test.verdict} /> },
  { name: "figures", title: words.figures, value: figuresText },
  { name: "bytes_checked", title: words.checked, value: test => test.bytes_checked || null,
    shown: test => test.bytes_checked
      ? text.verification.value({ stem: "", unit: "count" }, test.bytes_checked) : text.none },
  { name: "mismatches", title: words.wrong,
    value: test => test.bytes_checked ? test.mismatches ?? null : null,
    shown: test => test.bytes_checked
      ? text.verification.value({ stem: "", unit: "count" }, test.mismatches ?? 0) : text.none },
  { name: "by", title: words.by, value: test => words.judge[test.by] },
  { name: "detail", title: words.detail, value: test => test.detail ?? "" },
  { name: "remedy", title: words.remedy, value: test => test.remedy ?? "" },
];

export function Checks({ run }: { run: Verification }) {
  return (
    <section>
      <h3>{words.title}</h3>
      <Table caption={words.caption} items={run.tests} columns={columns}
             keyOf={test => test.name} />
    </section>
  );
}
