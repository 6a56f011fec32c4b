// SPDX-License-Identifier: Apache-2.0
// Short names for the API's types, which are generated from api/openapi.yaml.
import type { components, paths } from "#api";

type Schemas = components["schemas"];
export type Attachment = Schemas["Attachment"];
export type AttachmentSpec = Schemas["AttachmentSpec"];
export type AuditEntry = Schemas["AuditEntry"];
export type Certificate = Schemas["Certificate"];
// That of the desired document has its differences, too.
export type DryRun = Schemas["DryRun"] & Partial<Pick<Schemas["DesiredDryRun"], "changes">>;
export type DesiredChange = Schemas["DesiredChange"];
export type Event = Schemas["Event"];
export type EventKind = Schemas["EventKind"];
export type Finding = Schemas["Finding"];
export type HostTree = Schemas["HostTree"];
export type HostDevice = Schemas["HostDevice"];
export type Loss = Schemas["Loss"];
export type Network = Schemas["Network"];
export type NewSession = Schemas["NewSession"];
export type NewToken = Schemas["NewToken"];
export type Operation = Schemas["Operation"];
export type Pf = Schemas["Pf"];
export type PfSpec = Schemas["PfSpec"];
export type PfRow = Omit<Pf, "vfs">; // the store keeps VFs on their own
export type Plan = Schemas["Plan"];
export type Pool = Schemas["Pool"];
export type Problem = Schemas["Problem"];
export type Readiness = Schemas["Readiness"];
export type Remedy = Schemas["Remedy"];
export type Role = Schemas["Role"];
export type Span = Schemas["Span"];
export type Tenant = Schemas["Tenant"];
export type TestResult = Schemas["TestResult"];
export type Token = Schemas["Token"];
export type TokenRequest = Schemas["TokenRequest"];
export type Verdict = Schemas["Verdict"];
export type Verification = Schemas["Verification"];
export type Vf = Schemas["Vf"];
export type VfId = Schemas["VfId"];
export type VfSpec = Schemas["VfSpec"];
export type VmInfo = Schemas["VmInfo"];

export type Paths = paths;
export type Method = "get" | "post" | "put" | "patch" | "delete";
// The paths that have this method.
export type PathOf<M extends Method> = {
  [P in keyof Paths]: Paths[P] extends { [K in M]: { responses: object } } ? P : never;
}[keyof Paths];

type Content<R> = R extends { content: { "application/json": infer B } } ? B : never;
type Responses<P extends keyof Paths, M extends Method> =
  Paths[P] extends { [K in M]: { responses: infer R } } ? R : never;
// The body of an answer with this status, or with one of these.
export type Body<P extends keyof Paths, M extends Method, S extends number> =
  S extends keyof Responses<P, M> ? Content<Responses<P, M>[S]> : never;
// What a write answers that was no dry run and began no operation.
export type Done<P extends keyof Paths, M extends Method> =
  Exclude<Body<P, M, 200 | 201>, Schemas["DryRun"] | Schemas["DesiredDryRun"]>;
type RequestOf<P extends keyof Paths, M extends Method> =
  Paths[P] extends { [K in M]: infer O } ? O : never;
type JsonIn<O> = O extends { requestBody?: { content: infer C } }
  ? C extends { "application/json": infer B } ? B : never
  : never;
export type Input<P extends keyof Paths, M extends Method> = JsonIn<RequestOf<P, M>>;
// What a list has one of.
export type Item<P extends PathOf<"get">> =
  Body<P, "get", 200> extends { items: (infer T)[] } ? T : never;
