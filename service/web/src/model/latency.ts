// SPDX-License-Identifier: Apache-2.0
// The API reports percentiles of a latency. Between two of them lies a known share of the messages,
// which is a bar of the histogram.
import type { TestResult } from "../transport/types";
import { figure } from "./runs";

const PERCENTILES: readonly (readonly [string, number])[] = [
  ["min_us", 0], ["p50_us", 50], ["p90_us", 90], ["p99_us", 99], ["p999_us", 99.9],
  ["max_us", 100],
];

export interface Percentile {
  name: string; // "p50_us"
  us: number;
}
export interface Band {
  fromUs: number;
  toUs: number;
  percent: number; // of the messages
}
export interface Latency {
  test: string;
  percentiles: Percentile[];
  bands: Band[]; // empty: too few percentiles for a histogram
}

export function latenciesOf(tests: readonly TestResult[]): Latency[] {
  return tests.map(latencyOf).filter(one => one.percentiles.length > 0);
}

function latencyOf(test: TestResult): Latency {
  const known = PERCENTILES.flatMap(([name, percent]) => {
    const us = figure(test, name);
    return us === null || !(us > 0) ? [] : [{ name, us, percent }];
  });
  const complete = known.length === PERCENTILES.length
    && known.every((one, at) => at === 0 || one.us >= known[at - 1]!.us);
  return {
    test: test.name,
    percentiles: known.map(({ name, us }) => ({ name, us })),
    bands: complete ? bandsOf(known) : [],
  };
}

// Percentiles that are equal have no width: their share belongs to the band that follows.
function bandsOf(known: readonly { us: number; percent: number }[]): Band[] {
  const bands: Band[] = [];
  let [from, share] = [known[0]!, 0];
  for (const to of known.slice(1)) {
    share = to.percent - from.percent;
    if (to.us === from.us) continue;
    bands.push({ fromUs: from.us, toUs: to.us, percent: share });
    from = to;
  }
  const last = bands.at(-1);
  if (last !== undefined && from.percent < 100) last.percent += 100 - from.percent;
  return bands;
}

export interface Bar {
  band: Band;
  left: number; // percent of the width, which is logarithmic
  width: number;
  height: number; // 0 to 1; the area is the share
}

export interface Scale {
  fromUs: number;
  toUs: number;
}

// One scale for all, so that tests compare.
export function scaleOf(latencies: readonly Latency[]): Scale | null {
  const bands = latencies.flatMap(one => one.bands);
  if (bands.length === 0) return null;
  return {
    fromUs: Math.min(...bands.map(band => band.fromUs)),
    toUs: Math.max(...bands.map(band => band.toUs)),
  };
}

export function placeOn(scale: Scale, us: number): number {
  return 100 * Math.log(us / scale.fromUs) / Math.log(scale.toUs / scale.fromUs);
}

export function barsOf(bands: readonly Band[], scale: Scale): Bar[] {
  const placed = bands.map(band => {
    const left = placeOn(scale, band.fromUs);
    return { band, left, width: placeOn(scale, band.toUs) - left };
  });
  const densest = Math.max(...placed.map(({ band, width }) => band.percent / width));
  return placed.map(one => ({ ...one, height: one.band.percent / one.width / densest }));
}

// Round values on the scale: 1 and 3 of each power of ten, or the powers where there are many.
export function ticksOf(scale: Scale): number[] {
  const first = Math.floor(Math.log10(scale.fromUs));
  const last = Math.ceil(Math.log10(scale.toUs));
  const of = last - first > 3 ? [1] : [1, 3];
  return Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at))
    .flatMap(power => of.map(one => one * power))
    .filter(us => us >= scale.fromUs && us <= scale.toUs);
}
