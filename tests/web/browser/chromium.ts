// SPDX-License-Identifier: Apache-2.0
// Debian's Chromium, and pages of the console in it. Whatever a page does against the content
// policy, and whatever its scripts throw, fails the test that opened it.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";

export const VIEW = { width: 1280, height: 900 };
const PROGRAM = "/usr/bin/chromium";
const WAIT_MS_MAX = 20_000; // for what a test waits for, on a machine that is busy

export async function launched(): Promise<Browser> {
  return chromium.launch({
    executablePath: PROGRAM,
    // Texts have the same widths on every machine.
    args: ["--disable-gpu", "--font-render-hinting=none", "--force-color-profile=srgb"],
  });
}

// What serves the console, and an admin's token for it.
export interface Served {
  readonly url: string;
  readonly token: string;
}

// A person's browser: pages of one context share their storage.
export class Person {
  readonly trouble: string[] = [];

  private constructor(readonly context: BrowserContext, private readonly daemon: Served) {}

  static async with(browser: Browser, daemon: Served,
                    options: BrowserContextOptions = {}): Promise<Person> {
    const context = await browser.newContext({
      ignoreHTTPSErrors: true, baseURL: daemon.url, viewport: VIEW,
      locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce", ...options,
    });
    context.setDefaultTimeout(WAIT_MS_MAX);
    const person = new Person(context, daemon);
    await context.exposeBinding("vfmgrViolation", (_, what: string) => {
      person.trouble.push(`content policy: ${what}`);
    });
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", event => {
        const told = (window as unknown as { vfmgrViolation: (what: string) => void });
        told.vfmgrViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    context.on("weberror", error => person.trouble.push(`script: ${error.error().stack}`));
    return person;
  }

  async open(hash = "#/"): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(`/${hash}`);
    return page;
  }

  // Opens a page as an admin who signs in with a token.
  async signedIn(hash = "#/"): Promise<Page> {
    const page = await this.open(hash);
    await signIn(page, this.daemon.token);
    return page;
  }

  // Closes the browser's windows; says what went wrong in them.
  async leave(): Promise<void> {
    await this.context.close();
    assert.deepEqual(this.trouble, []);
  }
}

// Chromium gives a page up when three kept connections in a row turn out to be closed, and a person
// reloads. Seen once in ten runs, on a busy machine; why they were closed is not known.
export async function reload(page: Page): Promise<void> {
  await page.reload().catch((error: Error) => {
    if (!error.message.includes("ERR_TOO_MANY_RETRIES")) throw error;
    return page.reload();
  });
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

export async function isLive(page: Page): Promise<void> {
  await page.getByRole("status").filter({ hasText: /^live$/ }).waitFor();
}
