// SPDX-License-Identifier: Apache-2.0
// Where things of a host lead.
import { hashBelow } from "../model/paths";
import type { VfId } from "../transport/types";

// A page of the host that is shown. In a fleet it is below that host's, which the browser's address
// names, so that a component needs not be told.
export function hashHere(...parts: (string | number)[]): string {
  return hashBelow(location.hash, ...parts);
}

export function hrefOfVm(name: string): string {
  return hashHere("vms", name);
}

// Its verifications.
export function hrefOfVf({ pf, index }: VfId): string {
  return hashHere("verification", pf, index);
}

export function hrefOfAttachmentRuns(id: string): string {
  return hashHere("verification", "attachment", id);
}

export function hrefOfOperation(id: string): string {
  return hashHere("events", "operation", id);
}

// The certificate of an attachment that ended.
export function hrefOfCertificate(attachment: string): string {
  return hashHere("events", "certificate", attachment);
}
