// SPDX-License-Identifier: Apache-2.0
import { Component, h } from "preact";
import type { ComponentChild, ComponentType, FunctionComponent } from "preact";

// Draws a component again only when a property has changed. That of preact/compat changes how
// events are named, and weighs more than the pages.
export function memo<P extends object>(inner: FunctionComponent<P>): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const now: P = this.props;
      return (Object.keys(next) as (keyof P)[]).some(name => next[name] !== now[name]);
    }
    override render(props: P): ComponentChild {
      return h(inner, props);
    }
  };
}
