// SPDX-License-Identifier: Apache-2.0
// The real vfmgrd on fakes (../daemon.py), as tests start it, ask it and change its host.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import * as path from "node:path";
import { createInterface } from "node:readline";
import { request } from "playwright-core";
import type { APIRequestContext } from "playwright-core";
import type { Operation } from "../../../service/web/src/transport/types";

export const root = process.env["VFMGR_ROOT"]!;
export type Json = Record<string, unknown>;

export class Daemon {
  url = "";
  token = ""; // an admin's
  private api!: APIRequestContext;
  private readonly answers: AsyncIterator<string>;

  private constructor(private readonly process: ChildProcess) {
    this.answers = createInterface({ input: process.stdout! })[Symbol.asyncIterator]();
  }

  static async start(host: Json, clients: Record<string, string> = {}): Promise<Daemon> {
    const daemon = new Daemon(spawn("/usr/bin/python3", [path.join(root, "tests/web/daemon.py")],
      { stdio: ["pipe", "pipe", "inherit"] }));
    const { url, token } = await daemon.tell({ host, clients }) as { url: string; token: string };
    daemon.url = url;
    daemon.token = token;
    daemon.api = await request.newContext({ ignoreHTTPSErrors: true, baseURL: url });
    return daemon;
  }

  // One change to the host, as fake_host.hpp lists them.
  async happen(what: Json): Promise<void> {
    await this.tell({ happen: what });
  }

  async stop(): Promise<void> {
    await this.tell({ daemon: "end" });
  }

  async startAgain(): Promise<void> {
    await this.tell({ daemon: "start" });
  }

  async certificateOf(name: string): Promise<{ certificate: string; key: string }> {
    return await this.tell({ issue: name }) as { certificate: string; key: string };
  }

  async ask(method: string, at: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = await this.api.fetch(at, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, ...headers },
      ...(body === undefined ? {} : { data: body }),
    });
    const text = await answer.text();
    return { status: answer.status(), body: text === "" ? null : JSON.parse(text) as Json };
  }

  // Sends a write and waits until its operation has succeeded.
  async do(method: string, at: string, body?: unknown): Promise<Operation | null> {
    const answer = await this.ask(method, at, body);
    if (answer.status === 200) return null;
    if (answer.status !== 202) throw new Error(`${method} ${at}: ${JSON.stringify(answer)}`);
    const operation = await this.ended(answer.body as unknown as Operation);
    if (operation.state !== "succeeded")
      throw new Error(`${method} ${at}: ${JSON.stringify(operation.problem)}`);
    return operation;
  }

  async ended(begun: Operation): Promise<Operation> {
    let operation = begun;
    while (operation.finished_at === null)
      operation = (await this.ask("GET", `/v1/operations/${operation.id}?wait=5`))
        .body as unknown as Operation;
    return operation;
  }

  async end(): Promise<void> {
    await this.api.dispose();
    const ended = new Promise<void>(resolve => this.process.once("exit", () => resolve()));
    this.process.stdin!.end();
    await ended;
  }

  private async tell(line: Json): Promise<unknown> {
    this.process.stdin!.write(`${JSON.stringify(line)}\n`);
    const { value, done } = await this.answers.next();
    if (done) throw new Error("tests/web/daemon.py ended; see above");
    const answer = JSON.parse(value) as { done?: unknown; failed?: string };
    if (answer.failed !== undefined) throw new Error(answer.failed);
    return answer.done;
  }
}
