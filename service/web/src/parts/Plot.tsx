// SPDX-License-Identifier: Apache-2.0
// Series over time. uPlot draws on a canvas, which has no texts to read: beside each plot is a
// table with the same figures.
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface Plotted {
  label: string;
  values: (number | null)[];
  colour: number; // which of the series' colours
  dashed: boolean;
}

const COLOURS = 6;
const HEIGHT = 240;
const WIDTH_MIN = 240;

export function Plot({ times, series, label, unit, timeLabel, shown }: {
  times: readonly number[]; series: readonly Plotted[]; label: string; unit: string;
  timeLabel: string; shown: (value: number) => string;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const colours = useColourChanges();
  const drawn = JSON.stringify([times, series]);
  useLayoutEffect(() => {
    const inside = frame.current!;
    const plot = new uPlot(options(inside, series, unit, timeLabel, shown),
      [[...times], ...series.map(one => one.values)], inside);
    const sized = new ResizeObserver(() =>
      plot.setSize({ width: widthIn(inside), height: HEIGHT }));
    sized.observe(inside);
    return () => {
      sized.disconnect();
      plot.destroy();
    };
  }, [drawn, colours]);
  return <div ref={frame} class="plot" role="img" aria-label={label} />;
}

function widthIn(frame: HTMLElement): number {
  return Math.max(WIDTH_MIN, Math.floor(frame.clientWidth));
}

function options(frame: HTMLElement, series: readonly Plotted[], unit: string, timeLabel: string,
                 shown: (value: number) => string): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
  };
  return {
    width: widthIn(frame),
    height: HEIGHT,
    cursor: { drag: { x: true, y: false } },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [axis, { ...axis, label: unit, labelSize: 18, size: 62 }],
    series: [{ label: timeLabel }, ...series.map(one => ({
      label: one.label,
      stroke: colour(`series-${one.colour % COLOURS + 1}`),
      width: 2,
      ...(one.dashed ? { dash: [5, 4] } : {}),
      points: { show: !one.dashed, size: 6 },
      value: (_: uPlot, value: number | null) => value === null ? "–" : shown(value),
    }))],
  };
}

// Counts the changes of the theme, by the system or by the person.
function useColourChanges(): number {
  const [changes, changed] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const again = (): void => changed(undefined);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const chosen = new MutationObserver(again);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    dark.addEventListener("change", again);
    return () => {
      chosen.disconnect();
      dark.removeEventListener("change", again);
    };
  }, []);
  return changes;
}
