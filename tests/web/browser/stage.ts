// SPDX-License-Identifier: Apache-2.0
// What the tests of a file share: a daemon on its host, or a fleet, and a browser that opens its
// console. Both are there before the first test, and end after the last, whatever failed.
import { after, before } from "node:test";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { launched, Person } from "./chromium";
import type { Served } from "./chromium";
import type { Daemon } from "./daemon";

export interface Ending extends Served {
  end(): Promise<void>;
}

export class Stage<D extends Ending = Daemon> {
  daemon!: D;
  browser!: Browser;

  person(options: BrowserContextOptions = {}): Promise<Person> {
    return Person.with(this.browser, this.daemon, options);
  }
}

// `ready`: what a file does once both are there. Node does not wait for one hook before the next.
export function staged<D extends Ending>(start: () => Promise<D>,
    ready: () => Promise<void> = async () => undefined): Stage<D> {
  const stage = new Stage<D>();
  before(async () => {
    stage.daemon = await start();
    stage.browser = await launched();
    await ready();
  });
  after(async () => {
    await stage.browser?.close();
    await stage.daemon?.end();
  });
  return stage;
}
