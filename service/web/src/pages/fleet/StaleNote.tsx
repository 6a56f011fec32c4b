// SPDX-License-Identifier: Apache-2.0
// Of which hosts a page may show what no longer is so, and since when.
import { byName } from "../../model/fleet";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Stale } from "../../transport/fleet_types";
import { hrefOfFleetHost } from "./links";

const words = text.fleet.stale;
const SHOWN = 10;

export function StaleNote({ stale }: { stale: ReadonlyMap<string, Stale> }) {
  if (stale.size === 0) return null;
  const all = [...stale.values()].sort((one, other) => byName(one.host, other.host));
  return (
    <section class="panel stale" aria-label={words.title}>
      <p>{words.about(all.length)}</p>
      <ul>
        {all.slice(0, SHOWN).map(({ host, since, why }) => (
          <li key={host}>
            {host === "" ? words.own : <a href={hrefOfFleetHost(host)}>{host}</a>}
            {" "}{words.since} <When at={since} />{why ? `: ${why}` : ""}
          </li>
        ))}
        {all.length > SHOWN && <li>{words.more(all.length - SHOWN)}</li>}
      </ul>
    </section>
  );
}
