// SPDX-License-Identifier: Apache-2.0
// Where things lead.
import { hashOf } from "../model/paths";
import type { VfId } from "../transport/types";

export function hrefOfVm(name: string): string {
  return hashOf("vms", name);
}

// Its verifications.
export function hrefOfVf({ pf, index }: VfId): string {
  return hashOf("verification", pf, index);
}

export function hrefOfAttachmentRuns(id: string): string {
  return hashOf("verification", "attachment", id);
}

export function hrefOfOperation(id: string): string {
  return hashOf("events", "operation", id);
}

// The certificate of an attachment that ended.
export function hrefOfCertificate(attachment: string): string {
  return hashOf("events", "certificate", attachment);
}
