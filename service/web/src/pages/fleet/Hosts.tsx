// SPDX-License-Identifier: Apache-2.0
// The fleet at a glance: its hosts in their racks, and which of them need somebody.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAll } from "../../live/hooks";
import { CONDITIONS, firstOf, matchingHosts, racksOf, sumsOf } from "../../model/fleet";
import type { Rack } from "../../model/fleet";
import type { Route } from "../../model/paths";
import { memo } from "../../parts/memo";
import { ProblemBox } from "../../parts/ProblemBox";
import { text } from "../../text/en";
import { useFleet, useParts, useStale } from "./context";
import { HostCell } from "./HostCell";
import { HostFilterForm, useHostFilter } from "./HostFilterForm";
import { HostTable } from "./HostTable";
import { StaleNote } from "./StaleNote";

const words = text.fleet;
const NEW_EACH_FRAME = 100;

export function Hosts({ route }: { route: Route }) {
  const { store } = useFleet();
  useParts(store.attachments);
  const hosts = useAll(store.hosts.rows);
  const stale = useStale(store.attachments);
  const [filter, change] = useHostFilter(route);
  const shown = useMemo(() => matchingHosts(hosts, filter), [hosts, filter]);
  const { loaded, problem } = store.hosts.status;
  const sums = sumsOf(shown);
  return (
    <>
      <h1>{words.pages.hosts}</h1>
      {problem && <ProblemBox problem={problem} again={() => store.hosts.everything()} />}
      {store.attachments.status.problem && (
        <ProblemBox problem={store.attachments.status.problem}
                    again={() => store.attachments.everything()} />
      )}
      {!loaded && <p role="status">{words.reading}</p>}
      {loaded && (
        <>
          <HostFilterForm hosts={hosts} filter={filter} change={change} />
          <p role="status">{words.sums(sums, hosts.length)}</p>
          <ul class="legend" aria-label={words.filter.condition}>
            {CONDITIONS.map(one => (
              <li key={one} class={sums.conditions[one] === 0 ? "quiet" : undefined}>
                <span class={`host-mark ${one}`}>{words.counted(sums.conditions[one], one)}</span>
              </li>
            ))}
          </ul>
          <StaleNote stale={stale} />
          <Racks racks={racksOf(shown)} />
          {shown.length === 0 && <p>{hosts.length === 0 ? words.noHosts : words.noneMatches}</p>}
          <HostTable hosts={shown} stale={stale} />
        </>
      )}
    </>
  );
}

function Racks({ racks }: { racks: readonly Rack[] }) {
  const most = useGrowing(racks.reduce((sum, rack) => sum + rack.hosts.length, 0));
  if (racks.length === 0) return null;
  return (
    <section aria-label={words.racks} onKeyDown={moved}>
      <p class="quiet">{words.hint}</p>
      {firstOf(racks, most).map(({ name, hosts, all }) => (
        <RackOf key={name ?? ""} name={name} count={all}
                hosts={hosts.map(host => host.name).join("\n")} />
      ))}
    </section>
  );
}

// How many of all are drawn: more with each frame, so that none takes long.
function useGrowing(all: number): number {
  const [most, setMost] = useState(NEW_EACH_FRAME);
  useEffect(() => {
    if (most > all) setMost(Math.max(all, NEW_EACH_FRAME));
    if (most >= all) return undefined;
    const frame = requestAnimationFrame(() => setMost(most + NEW_EACH_FRAME));
    return () => cancelAnimationFrame(frame);
  }, [most, all]);
  return most;
}

// Its names are all that it is drawn of, as one text: cells follow the rest.
const RackOf = memo<{ name: string | null; count: number; hosts: string }>(props => {
  const { name, count, hosts } = props;
  const names = hosts.split("\n");
  return (
    <section class="rack" aria-label={words.rack(name, count)}>
      <h2>{words.rack(name, count)}</h2>
      <div class="cells">
        {names.map((host, at) => <HostCell key={host} name={host} first={at === 0} />)}
      </div>
    </section>
  );
});

// Arrow keys move within a rack, Enter follows the link as everywhere.
function moved(event: KeyboardEvent): void {
  const cell = event.target instanceof Element ? event.target.closest("a.host-cell") : null;
  if (!(cell instanceof HTMLElement) || cell.parentElement === null) return;
  const cells = [...cell.parentElement.querySelectorAll<HTMLElement>("a.host-cell")];
  const top = cells[0]!.offsetTop;
  const perRow = cells.findIndex(one => one.offsetTop !== top);
  const row = perRow < 0 ? cells.length : perRow;
  const steps: Record<string, number> = {
    ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row,
    Home: -cells.length, End: cells.length,
  };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const place = cells.indexOf(cell) + step;
  cells[Math.min(cells.length - 1, Math.max(0, place))]?.focus();
}
