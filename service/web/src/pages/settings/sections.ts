// SPDX-License-Identifier: Apache-2.0
// The one list of sections. Each is there for everybody: the API says who may not read it.
import type { FunctionComponent } from "preact";
import type { Route } from "../../model/paths";
import { text } from "../../text/en";
import { Audit } from "./Audit";
import { Desired } from "./Desired";
import { Identities } from "./Identities";
import { Networks, Pools, Tenants } from "./kinds";
import { Pfs } from "./Pfs";
import { Tokens } from "./Tokens";

export interface Section {
  path: string;
  words: { title: string; about: string };
  component: FunctionComponent<{ route: Route }>;
}

const words = text.settings;
export const sections: readonly Section[] = [
  { path: "pfs", words: words.pfs, component: Pfs },
  { path: "networks", words: words.networks, component: Networks },
  { path: "pools", words: words.pools, component: Pools },
  { path: "identities", words: words.identities, component: Identities },
  { path: "desired", words: words.desired, component: Desired },
  { path: "tenants", words: words.tenants, component: Tenants },
  { path: "tokens", words: words.tokens, component: Tokens },
  { path: "audit", words: words.audit, component: Audit },
];
