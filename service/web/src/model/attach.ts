// SPDX-License-Identifier: Apache-2.0
// The form of a request to attach a VF, which is kept in the page's address.
import type { AttachmentSpec } from "../transport/types";

export interface AttachForm {
  network: string; // "" in each: leave it to vfmgr
  pool: string;
  pf: string;
  address: string;
  near: boolean; // near the VM's GPU
  verify: "none" | "background" | "required";
  persistence: "auto" | "live" | "config";
}

export const emptyForm: AttachForm = {
  network: "", pool: "", pf: "", address: "", near: false, verify: "required", persistence: "auto",
};

// The API wants one of them to choose a VF by.
export function choosesVf(form: AttachForm): boolean {
  return form.network !== "" || form.pool !== "" || form.pf !== "" || form.near;
}

export function specOf(vm: string, form: AttachForm): AttachmentSpec {
  const spec: Record<string, unknown> = { vm, verify: form.verify };
  for (const name of ["network", "pool", "pf", "address"] as const)
    if (form[name].trim() !== "") spec[name] = form[name].trim();
  if (form.near) spec["near"] = "gpu";
  if (form.persistence !== "auto") spec["persistence"] = form.persistence;
  return spec as AttachmentSpec;
}

export function formOf(query: ReadonlyMap<string, string>): AttachForm {
  const one = <T extends string>(name: string, of: readonly T[], otherwise: T): T =>
    of.find(value => value === query.get(name)) ?? otherwise;
  return {
    network: query.get("network") ?? "",
    pool: query.get("pool") ?? "",
    pf: query.get("pf") ?? "",
    address: query.get("address") ?? "",
    near: query.get("near") === "gpu",
    verify: one("verify", ["none", "background", "required"], emptyForm.verify),
    persistence: one("persistence", ["auto", "live", "config"], emptyForm.persistence),
  };
}

export function queryOf(form: AttachForm): Record<string, string> {
  const { near, ...texts } = form;
  const given = Object.entries(texts)
    .filter(([name, value]) => value !== emptyForm[name as keyof typeof texts]);
  return Object.fromEntries(near ? [...given, ["near", "gpu"]] : given);
}
