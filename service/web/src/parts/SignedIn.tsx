// SPDX-License-Identifier: Apache-2.0
// The console of somebody who is signed in: that of a host, or of a fleet, as what serves the page
// says.
import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { FleetConsole } from "../pages/fleet/FleetConsole";
import { text } from "../text/en";
import { apiOver, problemIn } from "../transport/api";
import { isFleet } from "../transport/fleet";
import type { Transport } from "../transport/transport";
import type { Problem } from "../transport/types";
import type { Person } from "./context";
import { HostConsole } from "./HostConsole";
import { ProblemBox } from "./ProblemBox";
import { useRoute } from "./Router";

export interface SignedInProps {
  transport: Transport;
  person: Person;
  onOver: () => void;
}

export function SignedIn(props: SignedInProps) {
  const { transport, onOver } = props;
  const api = useMemo(() => apiOver(transport, onOver), [transport]);
  const [serves, setServes] = useState<"host" | "fleet" | Problem | null>(null);
  const [turn, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    let current = true;
    const take = (found: "host" | "fleet" | Problem): void => { if (current) setServes(found); };
    api.get("/v1").then(about => take(isFleet(about) ? "fleet" : "host"),
      (error: unknown) => take(problemIn(error)));
    return () => { current = false; };
  }, [api, turn]);
  if (serves === "fleet") return <FleetConsole {...props} />;
  if (serves === "host") return <OfHost {...props} />;
  return (
    <main>
      {serves === null ? <p role="status">{text.frame.asking}</p>
        : <ProblemBox problem={serves} again={() => again(undefined)} />}
    </main>
  );
}

export function OfHost({ transport, person, onOver }: SignedInProps) {
  return <HostConsole transport={transport} person={person} onUnauthorized={onOver}
                      route={useRoute()} />;
}
