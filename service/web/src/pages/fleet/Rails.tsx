// SPDX-License-Identifier: Apache-2.0
// Rails across hosts: the PFs with the same label `rail`, or of the same network, as columns.
import { useMemo } from "preact/hooks";
import { useAll } from "../../live/hooks";
import { matchingHosts } from "../../model/fleet";
import { railsOf } from "../../model/fleet_rows";
import type { PfOfFleet, Rail, RailBy, RailHost } from "../../model/fleet_rows";
import type { Route } from "../../model/paths";
import { Choice } from "../../parts/fields";
import { useKept } from "../../parts/kept";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Stale } from "../../transport/fleet_types";
import { useFleet, useParts, useStale } from "./context";
import { HostFilterForm, useHostFilter } from "./HostFilterForm";
import { hrefOfHost } from "./links";
import { StaleNote } from "./StaleNote";

const words = text.fleet.rails;
const STEP = 100;

export function Rails({ route }: { route: Route }) {
  const { store } = useFleet();
  useParts(store.pfs);
  const hosts = useAll(store.hosts.rows);
  const pfs = useAll(store.pfs.rows);
  const stale = useStale(store.pfs);
  const [filter, change] = useHostFilter(route);
  const [by, setBy] = useKept<RailBy>("columns", "label");
  const [isOnlyBad, setOnlyBad] = useKept("only", false);
  const shown = useMemo(() => {
    const names = new Set(matchingHosts(hosts, filter).map(host => host.name));
    const all = pfs.filter(pf => names.has(pf.host));
    const bad = new Set(all.filter(pf => pf.link !== "up").map(pf => pf.host));
    return railsOf(isOnlyBad ? all.filter(pf => bad.has(pf.host)) : all, by);
  }, [hosts, pfs, filter, by, isOnlyBad]);
  const { loaded, problem } = store.pfs.status;
  return (
    <>
      <h1>{text.fleet.pages.rails}</h1>
      <p class="quiet">{words.about}</p>
      {problem && <ProblemBox problem={problem} again={() => store.pfs.everything()} />}
      {!loaded && <p role="status">{text.fleet.reading}</p>}
      {loaded && (
        <>
          <HostFilterForm hosts={hosts} filter={filter} change={change} />
          <div class="filter">
            <Choice label={words.by} value={by} options={words.bys} onChange={setBy} />
            <label class="check">
              <input type="checkbox" checked={isOnlyBad}
                     onChange={event => setOnlyBad(event.currentTarget.checked)} />
              {words.only}
            </label>
          </div>
          <StaleNote stale={stale} />
          {shown.rails.length === 0 ? <p>{words.none}</p> : (
            <>
              <Table caption={words.caption} items={shown.rails} columns={sumColumns}
                     keyOf={rail => rail.name ?? ""} />
              <Matrix rails={shown.rails} hosts={shown.hosts} stale={stale} by={by} />
            </>
          )}
        </>
      )}
    </>
  );
}

const sumColumns: readonly ShownColumn<Rail>[] = [
  { name: "rail", title: words.rail, value: rail => words.name(rail.name) },
  { name: "hosts", title: words.hosts, value: rail => rail.hosts },
  { name: "up", title: words.up, value: rail => rail.up },
  { name: "not_up", title: words.notUp, value: rail => rail.notUp,
    shown: rail => rail.notUp === 0 ? 0 : <span class="remark">{rail.notUp}</span> },
  { name: "free_vfs", title: words.free, value: rail => rail.free },
  { name: "vfs", title: words.vfs, value: rail => rail.vfs },
];

function Matrix({ rails, hosts, stale, by }: {
  rails: readonly Rail[]; hosts: readonly RailHost[]; stale: ReadonlyMap<string, Stale>;
  by: RailBy;
}) {
  const { store } = useFleet();
  const names = rails.map(rail => rail.name ?? "").join("\n");
  const columns = useMemo((): readonly ShownColumn<RailHost>[] => [
    { name: "host", title: words.host, value: one => one.host },
    { name: "rack", title: words.rack, value: one => store.hosts.rows.get(one.host)?.rack ?? "" },
    ...rails.map(({ name }, at): ShownColumn<RailHost> => ({
      name: `rail ${name ?? ""}`, title: words.name(name),
      value: one => one.on[at]?.map(said).join("; ") ?? "",
      shown: one => one.on[at]?.map(pf => <Port key={pf.pci} pf={pf} />),
    })),
    { name: "stale_since", title: text.fleet.stale.column,
      value: one => stale.get(one.host)?.since ?? "",
      shown: one => stale.has(one.host) ? <When at={stale.get(one.host)!.since} /> : "" },
  ], [names, by, stale]);
  return (
    <Table caption={words.matrix} items={hosts} columns={columns} step={STEP}
           keyOf={one => one.host} href={one => hrefOfHost(one.host)} />
  );
}

function said({ ifname, pci, link, free, vfs }: PfOfFleet): string {
  return words.pf(ifname || pci, link, free, vfs);
}

function Port({ pf }: { pf: PfOfFleet }) {
  return (
    <span class={`verdict ${pf.link === "up" ? "pass" : "fail"} port-of`} title={pf.trouble ?? ""}>
      {said(pf)}{pf.trouble !== null && <span class="remark"> {pf.trouble}</span>}
    </span>
  );
}
