// SPDX-License-Identifier: Apache-2.0
// The console in Cockpit, which has signed the person in. They act as themselves, until they ask
// for administrative access, and after a reload again.
import { useEffect, useMemo, useState } from "preact/hooks";
import { text } from "../text/en";
import { apiOver, problemIn } from "../transport/api";
import { cockpitTransport } from "../transport/cockpit";
import type { Cockpit, CockpitUser } from "../transport/cockpit";
import { itself } from "../transport/session";
import type { Problem } from "../transport/types";
import type { Acting } from "./context";
import { OfHost } from "./SignedIn";

const ROOT = 0;
const nothing = (): void => undefined;

export function InCockpit({ cockpit }: { cockpit: Cockpit }) {
  const [user, setUser] = useState<CockpitUser | null>(null);
  const [elevated, setElevated] = useState(false);
  const transport = useMemo(() => cockpitTransport(cockpit, elevated), [elevated]);
  useEffect(() => void cockpit.user().then(setUser), []);
  if (user === null) return <main><p role="status">{text.cockpit.asking}</p></main>;
  const acting: Acting = {
    name: user.name,
    elevated,
    elevate: () => asRoot(cockpit).then(problem => {
      if (problem === null) setElevated(true);
      return problem;
    }),
    giveUp: () => setElevated(false),
  };
  // With other rights each page begins again, as after a reload: from its address and drafts.
  const session = { ...itself, who: `uid:${user.id}` };
  const person = { session, acting: user.id === ROOT ? null : acting, signOut: nothing };
  return <OfHost key={String(elevated)} transport={transport} person={person} onOver={nothing} />;
}

// Asks for what anybody may read; says why there is no answer.
function asRoot(cockpit: Cockpit): Promise<Problem | null> {
  return apiOver(cockpitTransport(cockpit, true), nothing).get("/v1").then(() => null, problemIn);
}
