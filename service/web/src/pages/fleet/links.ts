// SPDX-License-Identifier: Apache-2.0
// Where things of a fleet lead: into the pages of their host.
import { hashOf } from "../../model/paths";

export function hrefOfHost(host: string): string {
  return hashOf("hosts", host);
}

// What the fleet knows of it, and what an admin does about it.
export function hrefOfFleetHost(host: string): string {
  return hashOf("hosts", host, "fleet");
}

export function hrefOfVm(host: string, vm: string): string {
  return hashOf("hosts", host, "vms", vm);
}

export function hrefOfVf(host: string, pf: string, index: number): string {
  return hashOf("hosts", host, "verification", pf, index);
}

export function hrefOfEvents(host: string): string {
  return hashOf("hosts", host, "events");
}
