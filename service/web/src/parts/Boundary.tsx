// SPDX-License-Identifier: Apache-2.0
import { Component } from "preact";
import type { ComponentChildren } from "preact";
import { problemIn } from "../transport/api";
import { ProblemBox } from "./ProblemBox";

// A page that fails says so, and leaves the frame and the other pages usable.
export class Boundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <ProblemBox problem={problemIn(error)} again={() => this.setState({ error: null })} />;
  }
}
