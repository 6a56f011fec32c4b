// SPDX-License-Identifier: Apache-2.0
// The figures of all runs over time.
import { trendOf } from "../../model/runs";
import { Plot } from "../../parts/Plot";
import { text } from "../../text/en";
import type { Verification } from "../../transport/types";

const words = text.verification.trend;
const BANDWIDTHS = ["bandwidth_mbps", "achievable_mbps"];
const LATENCIES = ["p50_us", "p99_us"];

export function Trends({ runs }: { runs: readonly Verification[] }) {
  return (
    <div class="columns wide">
      <TrendOf runs={runs} title={words.bandwidth} figures={BANDWIDTHS} unit={words.mbps}
               shown={text.unit.bandwidth} />
      <TrendOf runs={runs} title={words.latency} figures={LATENCIES} unit={words.us}
               shown={value => text.verification.value({ stem: "", unit: "us" }, value)} />
    </div>
  );
}

function TrendOf({ runs, title, figures, unit, shown }: {
  runs: readonly Verification[]; title: string; figures: readonly string[]; unit: string;
  shown: (value: number) => string;
}) {
  const { times, lines } = trendOf(runs, figures);
  const tests = [...new Set(lines.map(line => line.test))];
  const points = Math.max(0, ...lines.map(line =>
    line.values.filter(value => value !== null).length));
  return (
    <section>
      <h2>{title}</h2>
      {points < 2 ? <p>{words.few(points)}</p> : (
        <Plot times={times} label={words.label(title, times.length)} unit={unit}
              timeLabel={words.time} shown={shown}
              series={lines.map(line => ({
                label: words.line(line.test, line.figure), values: line.values,
                colour: tests.indexOf(line.test), dashed: line.figure !== figures[0],
              }))} />
      )}
    </section>
  );
}
