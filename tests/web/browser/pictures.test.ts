// SPDX-License-Identifier: Apache-2.0
// What pages look like to those who hear them, and where the host's picture has its parts, against
// the files in ../pictures. Not pixels: Chromium changes by the week. npm run pictures writes the
// files anew, for a person to look at the difference.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { root } from "./daemon";
import { compare, folder, lasting } from "./pictures";
import { inEveryState, PFS } from "./scenes";
import { staged } from "./stage";

const KIB = 1024;
const PICTURES_KIB_MAX = 300; // all of them, with those that the lab takes for the README

const stage = staged(inEveryState);

const pages: readonly (readonly [string, string, (page: Page) => Promise<unknown>])[] = [
  ["host", "#/", page => page.locator("a.cell.proved").waitFor()],
  ["vms", "#/vms", page => page.getByText("vm3").first().waitFor()],
  ["vm", "#/vms/vm1", page => page.getByText("attached and proved").waitFor()],
  ["verification", `#/verification/${PFS[0]}/0`,
    page => page.getByRole("link", { name: "Verify now …" }).waitFor()],
  ["settings-pf", `#/settings/pfs/${PFS[0]}`, async page => {
    await page.getByText("VFs now").waitFor();
    await page.getByText("The text is what this host has.").waitFor();
  }],
];
for (const [name, place, isThere] of pages) {
  test(`pictures: the accessibility tree of ${name}`, async () => {
    const person = await stage.person();
    const page = await person.signedIn(place);
    await isThere(page);
    compare(name, lasting(await page.locator("main").ariaSnapshot()));
    await person.leave();
  });
}

test("pictures: the boxes of the host's picture", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await page.locator("a.cell.proved").waitFor();
  // Texts are as wide as their font; the picture decides where they begin.
  const boxes = await page.evaluate(() => {
    const picture = document.querySelector<SVGSVGElement>("svg.picture")!;
    return [...picture.querySelectorAll<SVGGraphicsElement>("rect, path, text")].map(one => {
      const { x, y, width, height } = one.getBBox();
      const place = one instanceof SVGTextElement
        ? [one.getAttribute("x"), one.getAttribute("y")] : [x, y, width, height].map(Math.round);
      return `${one.tagName} ${one.parentElement!.getAttribute("class") ?? ""} ${place.join(" ")}`;
    });
  });
  compare("host-boxes", boxes.join("\n"));
  await person.leave();
});

test("pictures: they are small enough to be kept with the sources", () => {
  const all = [folder, path.join(root, "service/web/pictures")].filter(one => fs.existsSync(one))
    .flatMap(one => fs.readdirSync(one).map(name => fs.statSync(path.join(one, name)).size));
  assert.ok(all.length > 0);
  const kib = all.reduce((sum, size) => sum + size, 0) / KIB;
  assert.ok(kib <= PICTURES_KIB_MAX, `${kib.toFixed(1)} KiB of ${PICTURES_KIB_MAX} KiB`);
});
