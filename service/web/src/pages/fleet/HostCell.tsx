// SPDX-License-Identifier: Apache-2.0
// One host in its rack. It follows its own row, so that an event draws one cell, and has few
// elements, since there are a thousand.
import { useRow } from "../../live/hooks";
import { conditionsOf } from "../../model/fleet";
import { memo } from "../../parts/memo";
import { text } from "../../text/en";
import { useFleet } from "./context";
import { hrefOfHost } from "./links";

const words = text.fleet;
const BAR = 120;
const time = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const timeOf = (at: string): string => time.format(Date.parse(at));

export const HostCell = memo<{ name: string; first: boolean }>(({ name, first }) => {
  const { store } = useFleet();
  const host = useRow(store.hosts.rows, name);
  const proofs = useRow(store.proofs, name);
  const event = useRow(store.lastEvents, name);
  if (host === undefined) return null;
  const conditions = conditionsOf(host);
  const { observed, unreachable_since } = host;
  const all = observed?.vfs ?? 0;
  const free = all === 0 ? 0 : Math.round((observed?.free_vfs ?? 0) / all * BAR);
  const lines = [
    words.figures(host),
    // Until attachments are read, nothing is known of proofs; then a host without any has none.
    proofs !== undefined ? words.proofs(proofs.proved, proofs.failed)
      : store.attachments.status.loaded ? words.proofs(0, 0) : "",
    event === undefined ? "" : `${timeOf(event.at)} ${words.lastEvent(event.kind)}`,
  ];
  return (
    <a class={`host-cell ${conditions[0]}`} href={hrefOfHost(name)} tabIndex={first ? 0 : -1}>
      <b>{name}</b>
      <span class="condition">
        {conditions.map(one => one === "unreachable" && unreachable_since !== null
          ? `${words.unreachableSince} ${timeOf(unreachable_since)}` : words.condition(one))
          .join(", ")}
      </span>
      <svg class="bar" width={BAR} height="4" aria-hidden="true">
        {free > 0 && <rect width={free} height="4" />}
      </svg>
      {lines.filter(Boolean).join("\n")}
    </a>
  );
});
