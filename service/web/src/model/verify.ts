// SPDX-License-Identifier: Apache-2.0
// The form of a request to verify. All but the token of another responder is kept in the page's
// address.
import type { Input } from "../transport/types";

export type VerifyRequest = NonNullable<Input<"/v1/attachments/{id}/verifications", "post">>;
export const PROFILES = ["quick", "default", "deep"] as const;

export interface VerifyForm {
  profile: typeof PROFILES[number];
  timeout: string; // seconds; "": the API's default
  host: string; // of another responder; "": this host's
  port: string;
  fingerprint: string;
  token: string;
}

export const emptyVerify: VerifyForm = {
  profile: "default", timeout: "", host: "", port: "", fingerprint: "", token: "",
};

const KEPT = ["profile", "timeout", "host", "port", "fingerprint"] as const;

// The API says what is wrong with a value; only what it can't be asked about is decided here.
export function canAsk(form: VerifyForm): boolean {
  return form.host.trim() === "" || (form.fingerprint.trim() !== "" && form.token.trim() !== "");
}

export function verifyBody(form: VerifyForm): VerifyRequest {
  const body: VerifyRequest = { profile: form.profile };
  if (form.timeout.trim() !== "") body.timeout_seconds = Number(form.timeout);
  if (form.host.trim() === "") return body;
  body.responder = {
    host: form.host.trim(), fingerprint: form.fingerprint.trim(), token: form.token.trim(),
    ...(form.port.trim() === "" ? {} : { port: Number(form.port) }),
  };
  return body;
}

export function verifyFormOf(query: ReadonlyMap<string, string>): VerifyForm {
  const given = Object.fromEntries(KEPT.map(name => [name, query.get(name) ?? emptyVerify[name]]));
  const form = { ...emptyVerify, ...given };
  return { ...form, profile: PROFILES.find(one => one === form.profile) ?? "default" };
}

export function verifyQueryOf(form: VerifyForm): Record<string, string> {
  return Object.fromEntries(KEPT.filter(name => form[name] !== emptyVerify[name])
    .map(name => [name, form[name]]));
}
