// SPDX-License-Identifier: Apache-2.0
// Histograms of latencies, on one logarithmic scale. Widths are percentages, so no script measures.
import { barsOf, latenciesOf, placeOn, scaleOf, ticksOf } from "../../model/latency";
import type { Latency, Scale } from "../../model/latency";
import { namedFigure } from "../../model/units";
import { text } from "../../text/en";
import type { Verification } from "../../transport/types";

const words = text.verification.latency;
const HEIGHT = 64;
const AXIS = 18;

export function LatencyChart({ run }: { run: Verification }) {
  const latencies = latenciesOf(run.tests);
  const scale = scaleOf(latencies);
  return (
    <section>
      <h3>{words.title}</h3>
      {latencies.length === 0 && <p>{words.none}</p>}
      {scale !== null && <p class="quiet">{words.help}</p>}
      {latencies.filter(({ bands }) => bands.length > 0).map(one => (
        <div key={one.test}>
          <h4>{text.verification.test(one.test)}</h4>
          {scale !== null && <Histogram latency={one} scale={scale} />}
          <p>{percentilesText(one)}</p>
        </div>
      ))}
      <Others latencies={latencies.filter(({ bands }) => bands.length === 0)} />
    </section>
  );
}

function Others({ latencies }: { latencies: readonly Latency[] }) {
  if (latencies.length === 0) return null;
  return (
    <>
      <ul class="bars">
        {latencies.map(one => (
          <li key={one.test}>
            <b>{text.verification.test(one.test)}</b> {percentilesText(one)}
          </li>
        ))}
      </ul>
      <p class="quiet">{words.few}</p>
    </>
  );
}

function percentilesText({ percentiles }: Latency): string {
  return percentiles.map(({ name, us }) => percentileText(name, us)).join(" · ");
}

function percentileText(name: string, us: number): string {
  const named = namedFigure(name);
  return `${text.verification.stem(named.stem)} ${text.verification.value(named, us)}`;
}

function Histogram({ latency, scale }: { latency: Latency; scale: Scale }) {
  return (
    <svg class="histogram" width="100%" height={HEIGHT + AXIS} role="img"
         aria-label={words.picture(text.verification.test(latency.test))}>
      {ticksOf(scale).map(us => {
        const x = placeOn(scale, us);
        return (
          <g key={us}>
            <line x1={`${x}%`} x2={`${x}%`} y1="0" y2={HEIGHT} />
            <text x={`${x}%`} y={HEIGHT + AXIS - 4}
                  text-anchor={x < 5 ? "start" : x > 95 ? "end" : "middle"}>
              {words.tick(us)}
            </text>
          </g>
        );
      })}
      {barsOf(latency.bands, scale).map(({ band, left, width, height }) => {
        const tall = Math.max(2, height * HEIGHT);
        return (
          <rect key={band.toUs} x={`${left}%`} y={HEIGHT - tall} width={`${width}%`} height={tall}>
            <title>{words.band(band.fromUs, band.toUs, band.percent)}</title>
          </rect>
        );
      })}
      <line class="base" x1="0" x2="100%" y1={HEIGHT} y2={HEIGHT} />
    </svg>
  );
}
