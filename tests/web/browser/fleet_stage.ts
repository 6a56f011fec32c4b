// SPDX-License-Identifier: Apache-2.0
// A stand-in for vfmgr-fleetd: serves the console and the fleet's API for hosts whose answers are
// recorded, and for one that is a real vfmgrd on fakes, to which it passes requests on. What tests
// need of it is `Fleet`: the real vfmgr-fleetd can take its place.
import * as fs from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import type { AddressInfo } from "node:net";
import * as path from "node:path";
import type { FleetEvent, FleetHost } from "../../../service/web/src/transport/fleet_types";
import { root } from "./daemon";
import type { Daemon, Json } from "./daemon";
import { ownAnswer } from "./fleet_answers";
import type { Recorded } from "./fleet_answers";

export interface Fleet {
  readonly url: string;
  readonly token: string; // an admin's
  readonly viewer: string; // a viewer's
  end(): Promise<void>;
}

const PAGE = 500;
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
  + "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
  + "require-trusted-types-for 'script'";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
};
type Lists = "pfs" | "vms" | "attachments";

class Refusal extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

export class FleetStandIn implements Fleet {
  url = "";
  readonly token = "admin-of-the-fleet";
  readonly viewer = "viewer-of-the-fleet";
  readonly asked: string[] = []; // requests, as "GET /v1/hosts"
  private readonly streams = new Set<http.ServerResponse>();
  private readonly server = http.createServer((request, response) => {
    void this.answer(request, response);
  });
  private ends: (() => void)[] = [];

  private constructor(readonly hosts: Recorded[], private readonly real: Map<string, Daemon>) {}

  // `real`: the hosts of which what is recorded is not used.
  static async start(hosts: Recorded[], real: Record<string, Daemon> = {}): Promise<FleetStandIn> {
    const fleet = new FleetStandIn(hosts, new Map(Object.entries(real)));
    await new Promise<void>(resolve => fleet.server.listen(0, "127.0.0.1", resolve));
    fleet.url = `http://127.0.0.1:${(fleet.server.address() as AddressInfo).port}`;
    for (const [host, daemon] of fleet.real) fleet.ends.push(await forwarded(daemon, host, fleet));
    return fleet;
  }

  // To all that follow the fleet's events.
  emit(event: FleetEvent): void {
    const frame = `id: ${place(event)}\ndata: ${JSON.stringify(event)}\n\n`;
    for (const stream of this.streams) stream.write(frame);
  }

  // What the browser then resumes.
  cutStreams(): void {
    for (const stream of this.streams) stream.destroy();
  }

  change(name: string, part: Partial<FleetHost>): void {
    Object.assign(this.of(name).host, part);
  }

  async end(): Promise<void> {
    for (const end of this.ends) end();
    for (const daemon of this.real.values()) await daemon.end();
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }

  private of(name: string): Recorded {
    const found = this.hosts.find(one => one.host.name === name);
    if (found === undefined) throw new Refusal(404, "not_found", `there is no host ${name}`);
    return found;
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse) {
    const { method = "GET", headers } = request;
    const url = new URL(request.url ?? "/", this.url);
    try {
      if (!url.pathname.startsWith("/v1")) return file(url.pathname, response);
      this.asked.push(`${method} ${url.pathname}${url.search}`);
      const secret = (headers.authorization ?? "").replace(/^Bearer (session-)?/, "");
      if (secret !== this.token && secret !== this.viewer)
        throw new Refusal(401, "unauthorized", "no such token");
      const role = secret === this.token ? "admin" : "viewer";
      const passed = /^\/v1\/hosts\/([^/]+)(\/.*)$/.exec(url.pathname);
      const [, host = "", rest = ""] = passed ?? [];
      if (rest !== "" && !["/fenced", "/confirm"].includes(rest))
        return await this.pass(host, rest + url.search, request, response);
      if (url.pathname === "/v1/events") return this.follow(response);
      const body = await bodyOf(request);
      if (method !== "GET" && role !== "admin" && !url.pathname.startsWith("/v1/sessions"))
        throw new Refusal(403, "forbidden", "a viewer may not do this");
      const [status, answer] = await this.said(method, url, body, role, secret);
      response.writeHead(status, { "Content-Type": "application/json" })
        .end(answer === null ? "" : JSON.stringify(answer));
    } catch (error) {
      refuse(response, error);
    }
  }

  private async said(method: string, url: URL, body: Json, role: string, secret: string):
      Promise<[number, unknown]> {
    const { pathname } = url;
    if (pathname === "/v1/sessions") return [201, { who: `token:${role}`, role, scopes: null,
      tenant: null, expires_at: new Date(Date.now() + 3_600_000).toISOString(),
      token: `session-${secret}` }];
    if (pathname === "/v1/sessions/current") return [204, null];
    if (pathname === "/v1")
      return [200, { name: "vfmgr-fleetd", version: "0.2.0", api: "v1", features: ["fleet"],
        links: [] }];
    if (pathname === "/v1/hosts")
      return [200, page(this.hosts.map(({ host }) => host), url, [])];
    const list = /^\/v1\/(pfs|vms|attachments)$/.exec(pathname)?.[1] as Lists | undefined;
    if (list !== undefined) return [200, await this.list(list, url)];
    const [, name = "", act] = /^\/v1\/hosts\/([^/]+)(\/\w+)?$/.exec(pathname) ?? [];
    if (name === "") throw new Refusal(404, "not_found", `the fleet has no ${pathname}`);
    return this.acted(method, name, act, body);
  }

  private acted(method: string, name: string, act: string | undefined, body: Json):
      [number, unknown] {
    const { host } = this.of(name);
    const said = (reason: unknown) => ({ at: new Date().toISOString(), by: "token:admin",
      reason: String(reason ?? "") });
    if (act === "/fenced") host.fenced = method === "POST" ? said(body["evidence"]) : null;
    else if (act === "/confirm") Object.assign(host, { state: "active", reason: "" });
    else if (method === "PATCH") host.cordoned = body["cordoned"] ? said(body["reason"]) : null;
    else if (method === "DELETE") {
      this.hosts.splice(this.hosts.findIndex(one => one.host === host), 1);
      return [204, null];
    }
    return [200, host];
  }

  private async list(list: Lists, url: URL): Promise<unknown> {
    const only = url.searchParams.get("host");
    const hosts = this.hosts.filter(({ host }) => only === null || host.name === only);
    const items = await Promise.all(hosts.map(async one => {
      const daemon = this.real.get(one.host.name);
      const own = daemon === undefined ? one[list]
        : (await daemon.ask("GET", `/v1/${list}`)).body!["items"] as Json[];
      return own.map(item => () => ({ host: one.host.name, ...item }));
    }));
    const stale = hosts.filter(({ host }) => host.unreachable_since !== null).map(({ host }) =>
      ({ host: host.name, since: host.unreachable_since!, why: host.unreachable_why }));
    return page(items.flat(), url, stale, make => make());
  }

  private follow(response: http.ServerResponse): void {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("event: current\nid: AA\ndata: {}\n\n");
    this.streams.add(response);
    response.on("close", () => this.streams.delete(response));
  }

  private async pass(host: string, rest: string, request: http.IncomingMessage,
                     response: http.ServerResponse): Promise<void> {
    const recorded = this.of(host);
    const daemon = this.real.get(host);
    if (daemon !== undefined) return passOn(daemon, rest, request, response);
    if (recorded.host.unreachable_since !== null)
      throw new Refusal(503, "unavailable", `${host}: ${recorded.host.unreachable_why}`);
    if (rest === "/events") return void response
      .writeHead(200, { "Content-Type": "text/event-stream" })
      .write("event: current\nid: 1\ndata: {\"number\": 1}\n\n");
    const body = ownAnswer(recorded, rest);
    if (body === null) throw new Refusal(404, "not_found", `${host} has no ${rest}`);
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  }
}

function place({ host, number }: FleetEvent): string {
  return Buffer.from(`${host} ${number}`).toString("base64url");
}

function page<T>(items: T[], url: URL, stale: unknown[],
                 made: (item: T) => unknown = item => item): unknown {
  const from = Number(url.searchParams.get("cursor") ?? 0);
  const next = from + PAGE < items.length ? String(from + PAGE) : null;
  return { items: items.slice(from, from + PAGE).map(made), next, stale };
}

async function bodyOf(request: http.IncomingMessage): Promise<Json> {
  let text = "";
  for await (const part of request) text += part;
  return text === "" ? {} : JSON.parse(text) as Json;
}

function file(name: string, response: http.ServerResponse): void {
  const at = path.join(root, "build/web/bundle", name === "/" ? "index.html" : path.basename(name));
  if (!fs.existsSync(at)) return void response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": TYPES[path.extname(at)] ?? "",
    "Content-Security-Policy": POLICY }).end(fs.readFileSync(at));
}

function refuse(response: http.ServerResponse, error: unknown): void {
  const { status, code } = error instanceof Refusal ? error : { status: 500, code: "internal" };
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { "Content-Type": "application/problem+json" }).end(JSON.stringify({
    type: `/v1/problems/${code}`, code, status, title: code,
    detail: error instanceof Error ? error.message : String(error), remedy: "ask the stand-in",
  }));
}

function secured(daemon: Daemon): https.RequestOptions {
  return { rejectUnauthorized: false, agent: false,
    headers: { Authorization: `Bearer ${daemon.token}` } };
}

function passOn(daemon: Daemon, rest: string, request: http.IncomingMessage,
                response: http.ServerResponse): void {
  const { host: _, authorization: __, connection: ___, ...headers } = request.headers;
  const at = rest.startsWith("/readyz") ? rest : `/v1${rest}`;
  const base = secured(daemon);
  const onward = https.request(`${daemon.url}${at}`, { ...base, method: request.method ?? "GET",
    headers: { ...headers, ...base.headers as http.OutgoingHttpHeaders } }, answer => {
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", error => refuse(response, new Refusal(503, "unavailable", error.message)));
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

// The host's own events, with its name first.
function forwarded(daemon: Daemon, host: string, fleet: FleetStandIn): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const asked = https.get(`${daemon.url}/v1/events`, secured(daemon), answer => {
      let rest = "";
      answer.setEncoding("utf8").on("error", () => undefined).on("data", (part: string) => {
        const frames = (rest + part).split("\n\n");
        rest = frames.pop()!;
        for (const frame of frames) {
          const data = /^data: ?(.*)$/m.exec(frame)?.[1];
          if (data === undefined || /^event:/m.test(frame)) continue;
          fleet.emit({ host, ...JSON.parse(data) } as FleetEvent);
        }
      });
      resolve(() => answer.destroy());
    });
    asked.on("error", reject);
  });
}
