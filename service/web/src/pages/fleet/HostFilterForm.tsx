// SPDX-License-Identifier: Apache-2.0
// Which hosts a page shows.
import { CONDITIONS, hostFilterOf, NO_RACK, racksOf } from "../../model/fleet";
import type { HostFilter } from "../../model/fleet";
import type { Route } from "../../model/paths";
import { Choice, Field } from "../../parts/fields";
import { text } from "../../text/en";
import type { FleetHost } from "../../transport/fleet_types";
import { useAddressed } from "./addressed";

const words = text.fleet.filter;

export function useHostFilter(route: Route):
    readonly [HostFilter, (part: Partial<HostFilter>) => void] {
  return useAddressed(route, hostFilterOf);
}

export function HostFilterForm({ hosts, filter, change }: {
  hosts: readonly FleetHost[]; filter: HostFilter; change: (part: Partial<HostFilter>) => void;
}) {
  const racks = racksOf(hosts).map(({ name }) =>
    name === null ? [NO_RACK, words.noRack] as const : [name, name] as const);
  // A rack of the address that no host has is still what the page filters by.
  const known = filter.rack === "" || racks.some(([name]) => name === filter.rack);
  return (
    <form class="filter" role="search" aria-label={words.title}
          onSubmit={event => event.preventDefault()}>
      <Choice label={words.rack} value={filter.rack} onChange={rack => change({ rack })}
              options={[["", words.anyRack], ...racks,
                ...known ? [] : [[filter.rack, filter.rack] as const]]} />
      <Field label={words.label} value={filter.label} hint={words.labelHint}
             onInput={label => change({ label })} />
      <Choice label={words.condition} value={filter.condition}
              onChange={condition => change({ condition })}
              options={[["", words.anyCondition],
                ...CONDITIONS.map(one => [one, text.fleet.condition(one)] as const)]} />
      <Field label={words.words} value={filter.words} hint={words.wordsHint}
             onInput={given => change({ words: given })} />
    </form>
  );
}
