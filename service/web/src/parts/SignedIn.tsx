// SPDX-License-Identifier: Apache-2.0
// The console of somebody who is signed in, over either transport.
import type { Transport } from "../transport/transport";
import type { Person } from "./context";
import { HostConsole } from "./HostConsole";
import { useRoute } from "./Router";

export interface SignedInProps {
  transport: Transport;
  person: Person;
  onOver: () => void;
}

export function OfHost({ transport, person, onOver }: SignedInProps) {
  return <HostConsole transport={transport} person={person} onUnauthorized={onOver}
                      route={useRoute()} />;
}
