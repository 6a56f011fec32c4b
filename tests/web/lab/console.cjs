// SPDX-License-Identifier: Apache-2.0
// The person of tests/lab/scenarios/console.py, at the console of an emulated host.
const { picture, takes, url } = require("./person.cjs");

const VIEW = { width: 1000, height: 400 }; // its pictures are kept with the sources

let page;

async function confirm(name) {
  const field = page.getByLabel(`Type ${name} to confirm`);
  if (await field.count() > 0) await field.fill(name);
}

async function applied(act, name) {
  const button = page.getByRole("button", { name: act, exact: true });
  await button.waitFor();
  const plan = await page.getByRole("region", { name: "Plan" }).innerText();
  await confirm(name);
  await button.click();
  return plan;
}

function cellOf(pf, index, state) {
  return page.locator(`a.cell.${state}[data-vf="${pf}/${index}"]`);
}

const steps = {
  async signIn({ token }) {
    await page.goto(url);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("status").filter({ hasText: /^live$/ }).waitFor();
  },

  async makeNetwork({ name, document }) {
    await page.goto(`${url}/#/settings/networks/${name}`);
    await page.getByLabel("Document, as JSON").fill(JSON.stringify(document, null, 2));
    await page.getByRole("button", { name: "Show the plan" }).click();
    await applied(`Make network ${name}`, name);
    await page.getByText("Done.").waitFor();
  },

  async makeVfs({ pf, ifname, count }) {
    await page.goto(`${url}/#/settings/pfs/${pf}`);
    await page.getByLabel("Mode").selectOption("manage");
    await page.getByLabel("Number of VFs").fill(String(count));
    await page.getByRole("button", { name: "Show the plan" }).click();
    const plan = await applied(`Configure ${ifname}`, ifname);
    await page.getByText("succeeded").waitFor();
    return plan;
  },

  async attach({ vm, network }) {
    await page.goto(`${url}/#/vms/${vm}`);
    await page.getByRole("link", { name: "Attach a VF …" }).click();
    await page.getByLabel("Network").selectOption(network);
    await page.getByRole("button", { name: "Show the plan" }).click();
    const plan = await applied(`Attach to ${vm}`, vm);
    const progress = page.getByRole("region", { name: "attach", exact: true });
    await progress.getByText("running …").waitFor();
    await progress.getByText("succeeded").waitFor();
    await page.getByText("attached and proved").waitFor();
    return { plan, steps: await progress.locator("li.done").count() };
  },

  // Waits until a VF's cell has that state, without a reload; returns what is said of it.
  async cell({ pf, index, state }) {
    if (!page.url().endsWith("/#/")) await page.goto(`${url}/#/`);
    const cell = cellOf(pf, index, state);
    await cell.waitFor();
    await cell.hover();
    const said = page.locator("p.described").filter({ hasText: `VF ${index} of` });
    await said.waitFor();
    return said.innerText();
  },

  async verification({ pf, index }) {
    await page.goto(`${url}/#/verification/${pf}/${index}`);
    const run = page.getByRole("region", { name: "Latest" });
    await run.waitFor();
    return run.innerText();
  },

  async events({ words }) {
    await page.goto(`${url}/#/events`);
    await page.getByLabel("Words").fill(words);
    const list = page.getByRole("list", { name: "Events and operations, newest first" });
    await list.getByRole("listitem").first().waitFor();
    return list.innerText();
  },

  async detach({ vm, index }) {
    await page.goto(`${url}/#/vms/${vm}`);
    await page.getByRole("link", { name: `Detach VF ${index} …` }).click();
    await applied(`Detach VF ${index} from ${vm}`, vm);
    await page.getByText("was reset and verified clean at").waitFor();
    await page.getByRole("link", { name: "Certificate" }).click();
    await page.getByRole("button", { name: "Print" }).waitFor();
    return page.locator("article.certificate").innerText();
  },

  async picture({ name }) {
    await picture(page, name);
  },
};

takes(steps, { viewport: VIEW }, one => { page = one; });
