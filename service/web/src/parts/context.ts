// SPDX-License-Identifier: Apache-2.0
// What every page of a signed-in person has.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Store } from "../live/store";
import type { Api } from "../transport/api";
import type { Session } from "../transport/session";
import type { Problem } from "../transport/types";

// In Cockpit: who acts, and whether as root.
export interface Acting {
  name: string;
  elevated: boolean;
  elevate(): Promise<Problem | null>; // why Cockpit does not
  giveUp(): void;
}

// Who is signed in, and what they may do about it.
export interface Person {
  session: Session;
  acting: Acting | null; // null: there is nothing to elevate
  signOut(): void;
}

export interface Console extends Person {
  api: Api;
  store: Store;
  host: string | null; // its name in the fleet that is shown; null: the page is the host's own
}

export const ConsoleContext = createContext<Console | null>(null);

export function useConsole(): Console {
  const here = useContext(ConsoleContext);
  if (here === null) throw new Error("outside of ConsoleContext");
  return here;
}
