// SPDX-License-Identifier: Apache-2.0
// #/hosts/NAME/fleet: what the fleet knows of a host, and what an admin does about it.
// ?act=… is one of those acts, with who is hit.
import { useRow } from "../../live/hooks";
import { conditionsOf } from "../../model/fleet";
import type { Route } from "../../model/paths";
import { Facts } from "../../parts/Facts";
import { ProblemBox } from "../../parts/ProblemBox";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { FleetAct } from "../../text/fleet";
import type { FleetHost, Statement } from "../../transport/fleet_types";
import { useFleet, useParts } from "./context";
import { HostAct } from "./HostAct";
import { hrefOfFleetHost } from "./links";

const words = text.fleet.host;

export function HostInFleet({ name, route }: { name: string; route: Route }) {
  const { store } = useFleet();
  useParts(store.hosts);
  const host = useRow(store.hosts.rows, name);
  const { loaded, problem } = store.hosts.status;
  const acts = host === undefined ? [] : actsFor(host);
  const act = acts.find(one => one === route.query.get("act"));
  return (
    <>
      <h1>{words.title(name)}</h1>
      {problem && <ProblemBox problem={problem} again={() => store.hosts.everything()} />}
      {host === undefined && (
        <p role="status">{loaded ? words.gone(name) : text.fleet.reading}</p>
      )}
      {host !== undefined && <About host={host} />}
      {host !== undefined && act === undefined && (
        <p class="acts">
          {acts.map(one => (
            <a key={one} class={one === "fence" || one === "expel" ? "button danger" : "button"}
               href={`${hrefOfFleetHost(name)}?act=${one}`}>{text.fleet.acts[one].begin}</a>
          ))}
        </p>
      )}
      {host !== undefined && act !== undefined && <HostAct key={act} host={host} act={act} />}
    </>
  );
}

function actsFor({ cordoned, fenced, state }: FleetHost): FleetAct[] {
  return [
    cordoned === null ? "cordon" : "uncordon", fenced === null ? "fence" : "unfence",
    ...state === "quarantined" ? ["confirm" as const] : [], "expel",
  ];
}

function About({ host }: { host: FleetHost }) {
  const names = words.facts;
  const { observed } = host;
  return (
    <>
      <Facts facts={[
        [names.condition, conditionsOf(host).map(text.fleet.condition).join(", ")],
        [names.unreachable, host.unreachable_since && <When at={host.unreachable_since} />],
        [names.why, [host.reason, host.unreachable_why].filter(Boolean).join("; ") || null],
        [names.rack, host.rack ?? text.none],
        [names.labels, Object.entries(host.labels).map(([key, value]) => `${key}=${value}`)
          .join(" ") || text.none],
        [names.vfs, observed && text.fleet.figures(host).replace("\n", ", ")],
        [names.observed, observed === null ? text.never : <When at={observed.observed_at} />],
        [names.version, observed && observed.version],
        [names.url, host.url],
        [names.key, <code>{host.public_key}</code>],
        [names.joined, <><When at={host.joined_at} /> {host.joined_by}</>],
      ]} />
      {host.fenced && <Said what={text.fleet.condition("fenced")} said={host.fenced} />}
      {host.cordoned && <Said what={text.fleet.condition("cordoned")} said={host.cordoned} />}
    </>
  );
}

function Said({ what, said }: { what: string; said: Statement }) {
  return (
    <p>
      {words.said(what, said.by)}, <When at={said.at} />{said.reason && `: ${said.reason}`}
    </p>
  );
}
