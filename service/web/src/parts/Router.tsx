// SPDX-License-Identifier: Apache-2.0
// Routes are in the hash, so that one index.html serves deep links, and back works.
import { useEffect, useState } from "preact/hooks";
import { routeOf } from "../model/paths";
import type { Route } from "../model/paths";

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return routeOf(hash);
}
