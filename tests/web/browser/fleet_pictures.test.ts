// SPDX-License-Identifier: Apache-2.0
// What pages of a fleet look like to those who hear them, against the files in ../pictures.
import { test } from "node:test";
import type { Page } from "playwright-core";
import { threeHosts } from "./fleet_answers";
import { FleetStandIn } from "./fleet_stage";
import { compare, lasting } from "./pictures";
import { staged } from "./stage";

const stage = staged(() => FleetStandIn.start(threeHosts()));

const pages: readonly (readonly [string, string, (page: Page) => Promise<unknown>])[] = [
  ["fleet", "#/", page => page.getByText("0 proved, 1 failed").waitFor()],
  ["fleet-rails", "#/rails", page => page.getByText("rail1 up, 1/3 free").first().waitFor()],
  ["fleet-fence", "#/hosts/h3/fleet?act=fence", page => page.getByText("1 VM with 1 VF").waitFor()],
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
