// SPDX-License-Identifier: Apache-2.0
// The console of somebody who is signed in, over either transport.
import { useEffect, useMemo } from "preact/hooks";
import { follow } from "../live/stream";
import { Store } from "../live/store";
import { apiOver } from "../transport/api";
import type { Session } from "../transport/session";
import type { Transport } from "../transport/transport";
import { ConsoleContext } from "./context";
import type { Acting, Console } from "./context";
import { Frame } from "./Frame";

export function SignedIn({ transport, session, acting, onOver, signOut }: {
  transport: Transport; session: Session; acting: Acting | null;
  onOver: () => void; signOut: () => void;
}) {
  const here = useMemo((): Console => {
    const api = apiOver(transport, onOver);
    return { api, store: new Store(api), session, acting, signOut };
  }, [transport]);
  // Tabs share a stream only with those that have the same rights.
  const principal = acting?.elevated ? `${session.who} elevated` : session.who;
  useEffect(() => follow(transport, principal, {
    onFrame: frame => here.store.onFrame(frame),
    onLiveness: liveness => here.store.onLiveness(liveness),
    onRefused: status => { if (status === 401) onOver(); },
  }), [here]);
  return <ConsoleContext.Provider value={here}><Frame /></ConsoleContext.Provider>;
}
