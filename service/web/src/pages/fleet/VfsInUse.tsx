// SPDX-License-Identifier: Apache-2.0
// Who holds which VF, on all hosts, and whether it is proved.
import { useMemo } from "preact/hooks";
import { useAll } from "../../live/hooks";
import { matchingHosts } from "../../model/fleet";
import type { HeldVf } from "../../model/fleet_rows";
import type { Route } from "../../model/paths";
import { Choice } from "../../parts/fields";
import { useKept } from "../../parts/kept";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { VerdictMark } from "../../parts/VerdictMark";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import { useFleet, useParts, useStale } from "./context";
import { HostFilterForm, useHostFilter } from "./HostFilterForm";
import { hrefOfVf, hrefOfVm } from "./links";
import { StaleNote } from "./StaleNote";

const words = text.fleet.vfs;
const STEP = 100;
const PROOFS = ["", "proved", "unproved", "failed"] as const;
type Proof = typeof PROOFS[number];

interface Row {
  held: HeldVf;
  rack: string;
  stale: string | null;
}

const names = words.table;
const columns: readonly ShownColumn<Row>[] = [
  { name: "host", title: names.host, value: ({ held }) => held.host },
  { name: "rack", title: names.rack, value: row => row.rack },
  { name: "vf", title: names.vf, value: ({ held }) => text.vms.vfOf(held.index, held.pf) },
  { name: "vm", title: names.vm, value: ({ held }) => held.vm,
    shown: ({ held }) => <a href={hrefOfVm(held.host, held.vm)} tabIndex={-1}>{held.vm}</a> },
  { name: "proved", title: names.proved, value: ({ held }) => held.proved },
  { name: "verdict", title: names.verdict, value: ({ held }) => held.verdict,
    shown: ({ held }) => <VerdictMark verdict={held.verdict} /> },
  { name: "verified_at", title: names.verified, value: ({ held }) => held.verifiedAt,
    shown: ({ held }) => <When at={held.verifiedAt} /> },
  { name: "network", title: names.network, value: ({ held }) => held.network },
  { name: "address", title: names.address, value: ({ held }) => held.address },
  { name: "mac", title: names.mac, value: ({ held }) => held.mac },
  { name: "state", title: names.state, value: ({ held }) => held.state },
  { name: "requested_by", title: names.by, value: ({ held }) => held.by },
  { name: "since", title: names.since, value: ({ held }) => held.since,
    shown: ({ held }) => <When at={held.since} /> },
  { name: "stale_since", title: text.fleet.stale.column, value: row => row.stale,
    shown: row => row.stale === null ? "" : <When at={row.stale} /> },
];

function is(held: HeldVf, proof: Proof): boolean {
  if (proof === "") return true;
  if (proof === "failed") return held.verdict === "fail";
  return held.proved === (proof === "proved");
}

export function VfsInUse({ route }: { route: Route }) {
  const { store } = useFleet();
  useParts(store.attachments);
  const hosts = useAll(store.hosts.rows);
  const all = useAll(store.attachments.rows);
  const stale = useStale(store.attachments);
  const [filter, change] = useHostFilter(route);
  const [proof, setProof] = useKept<Proof>("proof", "");
  const rows = useMemo(() => {
    const byName = new Map(matchingHosts(hosts, filter).map(host => [host.name, host]));
    return all.filter(held => byName.has(held.host) && is(held, proof)).map((held): Row => ({
      held, rack: byName.get(held.host)!.rack ?? "", stale: stale.get(held.host)?.since ?? null,
    }));
  }, [hosts, all, filter, proof, [...stale.keys()].join()]);
  const { loaded, problem } = store.attachments.status;
  return (
    <>
      <h1>{text.fleet.pages.vfs}</h1>
      <p class="quiet">{words.about}</p>
      {problem && <ProblemBox problem={problem} again={() => store.attachments.everything()} />}
      {!loaded && <p role="status">{text.fleet.reading}</p>}
      {loaded && (
        <>
          <HostFilterForm hosts={hosts} filter={filter} change={change} />
          <div class="filter">
            <Choice label={words.proof} value={proof} onChange={setProof}
                    options={PROOFS.map(one =>
                      [one, one === "" ? words.anyProof : words[one]] as const)} />
          </div>
          <StaleNote stale={stale} />
          <Table caption={words.caption} items={rows} columns={columns} step={STEP}
                 keyOf={({ held }) => `${held.host} ${held.id}`}
                 href={({ held }) => hrefOfVf(held.host, held.pf, held.index)} />
        </>
      )}
    </>
  );
}
