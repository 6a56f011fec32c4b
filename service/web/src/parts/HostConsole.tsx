// SPDX-License-Identifier: Apache-2.0
// The pages of one host, over a transport that leads to its API.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { follow } from "../live/stream";
import { Store } from "../live/store";
import type { Route } from "../model/paths";
import { pages } from "../pages/pages";
import { apiOver } from "../transport/api";
import type { Transport } from "../transport/transport";
import { ConsoleContext } from "./context";
import type { Console, Person } from "./context";
import { Frame } from "./Frame";

export interface HostConsoleProps {
  transport: Transport;
  person: Person;
  onUnauthorized: () => void;
  route: Route; // of the host's page
  host?: string; // its name in a fleet
  follows?: boolean; // the host's events
  way?: ComponentChildren;
  notice?: ComponentChildren;
}

export function HostConsole(props: HostConsoleProps) {
  const { transport, person, onUnauthorized, host = null, follows = true } = props;
  const here = useMemo((): Console => {
    const api = apiOver(transport, onUnauthorized);
    return { ...person, api, store: new Store(api), host };
  }, [transport]);
  // Tabs share a stream only with those that have the same rights.
  const elevated = person.acting?.elevated ? " elevated" : "";
  const principal = `${person.session.who}${elevated}${host === null ? "" : ` at ${host}`}`;
  useEffect(() => {
    if (!follows) return undefined;
    const end = follow(transport, principal, {
      onFrame: frame => here.store.onFrame(frame),
      onLiveness: liveness => here.store.onLiveness(liveness),
      onRefused: status => { if (status === 401) onUnauthorized(); },
    });
    return () => {
      end();
      if (here.store.status.liveness.live)
        here.store.onLiveness({ live: false, since: Date.now() });
    };
  }, [here, follows]);
  return (
    <ConsoleContext.Provider value={here}>
      <Frame pages={pages} route={props.route} person={here} live={here.store}
             below={host === null ? [] : ["hosts", host]} way={props.way} notice={props.notice} />
    </ConsoleContext.Provider>
  );
}
