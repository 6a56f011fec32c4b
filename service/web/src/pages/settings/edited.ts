// SPDX-License-Identifier: Apache-2.0
// What the editor of documents reads and writes.
import { problemIn } from "../../transport/api";
import type { Api, Revision, Write } from "../../transport/api";
import type { Input } from "../../transport/types";

export type EditedPath = "/v1/desired" | "/v1/networks/{name}" | "/v1/pools/{name}"
  | "/v1/tenants/{name}" | "/v1/identities" | "/v1/pfs/{pci}/spec";

// What is to be written. The API judges the document, which a person typed.
export interface Target {
  path: EditedPath;
  values?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, boolean>>;
}

export function writeOf(target: Target, document: unknown, etag: string): Write<EditedPath, "put"> {
  return { method: "put", ...target, body: document as Input<EditedPath, "put">, ifMatch: etag };
}

// The ETag of what does not exist, or was never set.
export const NONE = "\"0\"";

// A body that is null: there is none yet.
export async function revisionOrNone(api: Api, { path, values = {} }: Target):
    Promise<Revision<unknown>> {
  try {
    return await api.getRevision(path, values);
  } catch (error) {
    if (problemIn(error).code !== "not_found") throw error;
    return { body: null, etag: NONE };
  }
}
