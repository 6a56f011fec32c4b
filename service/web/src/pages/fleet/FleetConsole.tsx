// SPDX-License-Identifier: Apache-2.0
// The console of a fleet: its own pages, and below #/hosts/NAME those of each host.
import { useEffect, useMemo, useState } from "preact/hooks";
import { FleetStore } from "../../live/fleet";
import { useRow, useStatus } from "../../live/hooks";
import { follow } from "../../live/stream";
import { hashOf } from "../../model/paths";
import type { Route } from "../../model/paths";
import { Frame } from "../../parts/Frame";
import { HostConsole } from "../../parts/HostConsole";
import { useRoute } from "../../parts/Router";
import type { SignedInProps } from "../../parts/SignedIn";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import { fleetApiOver, transportTo } from "../../transport/fleet";
import type { Page } from "../pages";
import { FleetContext, useFleet } from "./context";
import type { Fleet } from "./context";
import { FleetEvents } from "./FleetEvents";
import { FleetVms } from "./FleetVms";
import { HostInFleet } from "./HostInFleet";
import { Hosts } from "./Hosts";
import { hrefOfFleetHost, hrefOfHost } from "./links";
import { Rails } from "./Rails";
import { VfsInUse } from "./VfsInUse";

const words = text.fleet;
// No event says that a host does not answer.
const HOSTS_MS = 10_000;

const pages: readonly Page[] = [
  { path: "", title: words.pages.hosts, component: Hosts },
  { path: "rails", title: words.pages.rails, component: Rails },
  { path: "vfs", title: words.pages.vfs, component: VfsInUse },
  { path: "vms", title: words.pages.vms, component: FleetVms },
  { path: "events", title: words.pages.events, component: FleetEvents },
];

export function FleetConsole({ transport, person, onOver }: SignedInProps) {
  const here = useMemo((): Fleet =>
    ({ ...person, store: new FleetStore(fleetApiOver(transport, onOver)) }), [transport]);
  const { store } = here;
  const route = useRoute();
  useEffect(() => {
    const unfollow = store.hosts.follow();
    const end = follow(transport, `${person.session.who} of the fleet`, {
      onFrame: frame => store.onFrame(frame),
      onLiveness: liveness => store.onLiveness(liveness),
      onRefused: status => { if (status === 401) onOver(); },
    });
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") store.hosts.everything();
    }, HOSTS_MS);
    return () => {
      unfollow();
      end();
      clearInterval(timer);
    };
  }, [here]);
  const [first, name, ...rest] = route.parts;
  const isHost = first === "hosts" && name !== undefined;
  return (
    <FleetContext.Provider value={here}>
      {!isHost && <Frame pages={pages} route={route} person={here} live={store} />}
      {isHost && rest[0] === "fleet" && <AboutHost name={name} route={route} here={here} />}
      {isHost && rest[0] !== "fleet" && (
        <Host key={name} name={name} route={{ ...route, parts: rest }} here={here}
              transport={transport} onOver={onOver} />
      )}
    </FleetContext.Provider>
  );
}

interface HostProps {
  name: string;
  route: Route;
  here: Fleet;
}

function AboutHost({ name, route, here }: HostProps) {
  const page = useMemo((): Page => ({
    path: "fleet", title: words.aboutHost,
    component: one => <HostInFleet name={name} route={one.route} />,
  }), [name]);
  return (
    <Frame pages={[page]} below={["hosts", name]} person={here} live={here.store}
           route={{ ...route, parts: route.parts.slice(2) }} way={<Way name={name} />} />
  );
}

function Host({ name, route, here, transport, onOver }: HostProps & {
  transport: SignedInProps["transport"]; onOver: () => void;
}) {
  const isSeen = useSeen();
  const toHost = useMemo(() => transportTo(name, transport), [transport, name]);
  // Whether it is the host that refused, or the fleet, the fleet itself says.
  const ask = (): void => {
    void transport.request("GET", "/v1").then(({ status }) => { if (status === 401) onOver(); },
      () => undefined);
  };
  return (
    <HostConsole transport={toHost} person={here} onUnauthorized={ask} route={route} host={name}
                 follows={isSeen} way={<Way name={name} />} notice={<Notice name={name} />} />
  );
}

// A browser opens six connections to a server. The fleet's stream is one for all tabs, but each
// host's is one more: tabs that nobody looks at have none.
function useSeen(): boolean {
  const [isSeen, setSeen] = useState(document.visibilityState === "visible");
  useEffect(() => {
    const changed = (): void => setSeen(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  return isSeen;
}

function Way({ name }: { name: string }) {
  const isAbout = location.hash.startsWith(hrefOfFleetHost(name));
  return (
    <nav class="way" aria-label={words.way}>
      <a href={hashOf()}>{words.back}</a>
      <span aria-hidden="true">›</span>
      <a href={hrefOfHost(name)} aria-current={isAbout ? undefined : "location"}>{name}</a>
      <a href={hrefOfFleetHost(name)} aria-current={isAbout ? "location" : undefined}>
        {words.aboutHost}
      </a>
    </nav>
  );
}

function Notice({ name }: { name: string }) {
  const { store } = useFleet();
  const host = useRow(store.hosts.rows, name);
  const { hosts } = store;
  useStatus(store);
  if (host === undefined) return hosts.status.loaded
    ? <p class="notice" role="status">{words.host.gone(name)}</p> : null;
  if (host.unreachable_since === null) return null;
  return (
    <div class="notice" role="status">
      <strong>{words.host.notice(name)}</strong>
      <p>
        {words.host.noticeAbout} <When at={host.unreachable_since} />
        {host.unreachable_why !== null && `: ${host.unreachable_why}`}
      </p>
    </div>
  );
}
