// SPDX-License-Identifier: Apache-2.0
// What axe finds on a page, light and dark, and whether it fits a narrow screen. axe runs scripts
// of its own in the page, so these pages bypass the content policy; all others keep to it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type axe from "axe-core";
import type { Page } from "playwright-core";
import { VIEW } from "./chromium";

const script = readFileSync(createRequire(__filename).resolve("axe-core/axe.min.js"), "utf8");
const TABS = 12;
const DRAWN_MS = 3_000;

export interface Found {
  light: string[];
  dark: string[];
  narrow: string[];
}

export function nothingYet(): Found {
  return { light: [], dark: [], narrow: [] };
}

// Colours are all that differs between light and dark.
async function findings(page: Page, rules?: readonly string[]): Promise<string[]> {
  await page.evaluate(script);
  const found = await page.evaluate(async only =>
    (window as unknown as { axe: typeof axe }).axe.run({
      resultTypes: ["violations"],
      ...only === undefined ? {} : { runOnly: { type: "rule", values: [...only] } },
    }), rules);
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html).slice(0, 3).join(" ")}`);
}

// The pictures learn of their new width and are drawn again within a few frames.
async function wider(page: Page): Promise<string[]> {
  const beyond = (): number =>
    document.documentElement.scrollWidth - document.documentElement.clientWidth;
  await page.waitForFunction(`(${beyond.toString()})() <= 0`, undefined, { timeout: DRAWN_MS })
    .catch(() => undefined);
  const pixels = await page.evaluate(beyond);
  return pixels > 0 ? [`the page is ${pixels} px wider than the screen`] : [];
}

export async function look(page: Page, name: string, found: Found): Promise<void> {
  const note = (into: string[], some: string[]): void => {
    into.push(...some.map(one => `${name}: ${one}`));
  };
  note(found.light, await findings(page));
  await page.emulateMedia({ colorScheme: "dark" });
  note(found.dark, await findings(page, ["color-contrast"]));
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 320, height: 700 });
  note(found.narrow, await wider(page));
  await page.setViewportSize(VIEW);
}

// Goes through the page by Tab, and returns how many elements that reaches.
export async function seenByKeyboard(page: Page, place: string): Promise<number> {
  await page.locator("main").focus();
  const seen = new Set<string>();
  for (let turn = 0; turn < TABS; ++turn) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const { activeElement: here } = document;
      if (here === null || here === document.body) return null;
      const { outlineStyle, boxShadow } = getComputedStyle(here);
      return { html: here.outerHTML, shown: outlineStyle !== "none" || boxShadow !== "none" };
    });
    if (at === null) break;
    assert.ok(at.shown, `${place}: nothing shows the focus on ${at.html.slice(0, 200)}`);
    seen.add(at.html);
  }
  return seen.size;
}
