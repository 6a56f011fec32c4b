// SPDX-License-Identifier: Apache-2.0
// Where things lead. A page that does not exist yet is no link.
import { hashOf } from "../model/paths";
import type { Attachment, Vf } from "../transport/types";
import { hasPage } from "./pages";

export function hrefOfVm(name: string): string {
  return hashOf("vms", name);
}

export function hrefOfVf(vf: Vf, attachment: Attachment | undefined): string {
  if (hasPage("verification")) return hashOf("verification", vf.pf, vf.index);
  return attachment === undefined ? hashOf() : hrefOfVm(attachment.vm);
}
