// SPDX-License-Identifier: Apache-2.0
// The person of tests/lab/scenarios/cockpit.py, at the console in an emulated host's Cockpit.
const { picture, takes, url } = require("./person.cjs");

const FRAME = 'iframe[name="cockpit1:localhost/vfmgr"]';

let page;
let frame; // Cockpit's, which has the console

async function goTo(...names) {
  for (const name of names) await frame.getByRole("link", { name, exact: true }).first().click();
}

async function planned() {
  await frame.getByRole("button", { name: "Show the plan" }).click();
}

// Presses the button below the plan, once the name that it may want is typed.
async function applied(act, name) {
  const button = frame.getByRole("button", { name: act, exact: true });
  await button.waitFor();
  const confirmed = frame.getByLabel(`Type ${name} to confirm`);
  if (await confirmed.count() > 0) await confirmed.fill(name);
  await button.click();
  await frame.getByText("succeeded").waitFor();
}

const steps = {
  // Cockpit keeps for each user whether a session begins with administrative access.
  async signIn({ user, password, superuser }) {
    await page.addInitScript(([name, value]) => localStorage.setItem(`superuser:${name}`, value),
      [user, superuser]);
    await page.goto(`${url}/vfmgr`);
    await page.locator("#login-user-input").fill(user);
    await page.locator("#login-password-input").fill(password);
    await page.locator("#login-button").click();
    frame = page.frameLocator(FRAME);
    await frame.getByRole("status").filter({ hasText: /^live$/ }).waitFor();
    return page.locator('a[href="/vfmgr"]').first().innerText();
  },

  // The host's picture, once it has cells; what it says of each VF.
  async picture({ name }) {
    await goTo("Host");
    await frame.locator("svg.picture a.cell").first().waitFor();
    await picture(page, name);
    return frame.locator("svg.picture a.cell")
      .evaluateAll(cells => cells.map(cell => cell.getAttribute("aria-label")));
  },

  async attach({ vm, network }) {
    await goTo("VMs", vm, "Attach a VF …");
    await frame.getByLabel("Network").selectOption(network);
    await planned();
    await applied(`Attach to ${vm}`, vm);
    await frame.getByText("attached and proved").waitFor();
  },

  // What the person is not allowed as themselves; returns what the refusal says.
  async tryVfs({ pf, count }) {
    await goTo("Settings", "PFs", pf);
    await frame.getByLabel("Number of VFs").fill(String(count));
    await planned();
    const refusal = frame.getByRole("alert");
    await refusal.waitFor();
    return refusal.innerText();
  },

  // Presses the button below the refusal; returns what the page then says of who acts, or that
  // Cockpit has limited access.
  async elevate() {
    await frame.getByRole("button", { name: "Administrative access" }).click();
    const answer = frame.locator("header .who, .problem .remark").first();
    await answer.waitFor();
    return answer.innerText();
  },

  // Goes on with what was written before.
  async makeVfs({ ifname }) {
    await frame.getByRole("button", { name: "Go on with it" }).click();
    await planned();
    await applied(`Configure ${ifname}`, ifname);
  },

  async giveUp({ user }) {
    await frame.getByRole("button", { name: `Act as ${user}`, exact: true }).click();
    await frame.getByRole("status").filter({ hasText: /^live$/ }).waitFor();
    return frame.locator("header .who").count();
  },
};

// Counts no trouble of Cockpit's own pages.
takes(steps, { viewport: { width: 1280, height: 800 }, of: "/vfmgr/" }, one => { page = one; });
