// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { hashOf, routeOf } from "../../model/paths";
import type { Route } from "../../model/paths";

// What a person looks for, which the page's address has: a link brings it, and what is typed goes
// there without an entry of the browser's history for each letter.
export function useAddressed<F extends object>(route: Route,
    of: (query: ReadonlyMap<string, string>) => F): readonly [F, (part: Partial<F>) => void] {
  const [filter, setFilter] = useState(() => of(route.query));
  useEffect(() => {
    const changed = (): void => setFilter(of(routeOf(location.hash).query));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return [filter, part => {
    const next = { ...filter, ...part };
    setFilter(next);
    const given = Object.entries(next).filter(([, value]) => value !== "");
    const query = new URLSearchParams(given as [string, string][]).toString();
    history.replaceState(history.state, "", `${hashOf(...route.parts)}${query && `?${query}`}`);
  }];
}
