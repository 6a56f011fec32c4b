// SPDX-License-Identifier: Apache-2.0
import type { Role, Token, TokenRequest } from "../transport/types";

export const ROLES: readonly Role[] = ["viewer", "operator", "admin"];
export const ENDS = ["30", "90", "365", "never"] as const; // days
export const GRACES = ["0", "3600", "86400"] as const; // seconds

export interface TokenForm {
  role: Role;
  description: string;
  ends: typeof ENDS[number];
  scopes: string; // separated by spaces or commas; "": all that the role may
  tenant: string; // "": of no tenant
}

export const emptyTokenForm: TokenForm = {
  role: "viewer", description: "", ends: "90", scopes: "", tenant: "",
};

export function tokenRequestOf(form: TokenForm): TokenRequest {
  const scopes = [...new Set(form.scopes.split(/[\s,]+/).filter(one => one !== ""))];
  return {
    role: form.role,
    ...(form.description.trim() === "" ? {} : { description: form.description.trim() }),
    ...(form.ends === "never" ? { never_expires: true } : { days: Number(form.ends) }),
    ...(scopes.length === 0 ? {} : { scopes }),
    ...(form.tenant === "" ? {} : { tenant: form.tenant }),
  };
}

// Whether it is the one that this session was begun with, and ends with.
export function isOwn(token: Pick<Token, "id">, who: string): boolean {
  return who === `token:${token.id}`;
}
