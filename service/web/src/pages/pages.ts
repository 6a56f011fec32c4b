// SPDX-License-Identifier: Apache-2.0
// The one list of a host's pages. The first part of the hash chooses the page, which gets the whole
// route; in a fleet, what follows the host's name.
import type { FunctionComponent } from "preact";
import type { Route } from "../model/paths";
import { text } from "../text/en";
import { Events } from "./Events";
import { Host } from "./Host";
import { Readiness } from "./Readiness";
import { Settings } from "./Settings";
import { Verification } from "./Verification";
import { Vms } from "./Vms";

export interface Page {
  path: string;
  title: string;
  component: FunctionComponent<{ route: Route }>;
}

export const pages: readonly Page[] = [
  { path: "", title: text.pages.host, component: Host },
  { path: "vms", title: text.pages.vms, component: Vms },
  { path: "verification", title: text.pages.verification, component: Verification },
  { path: "events", title: text.pages.events, component: Events },
  { path: "readiness", title: text.pages.readiness, component: Readiness },
  { path: "settings", title: text.pages.settings, component: Settings },
];

export function pageOf(all: readonly Page[], route: Route): Page | undefined {
  return all.find(page => page.path === (route.parts[0] ?? ""));
}
