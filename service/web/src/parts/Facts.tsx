// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

// Names with values. What is null is left out.
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value != null).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}
