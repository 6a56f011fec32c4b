// SPDX-License-Identifier: Apache-2.0
// node console.cjs URL FOLDER: a person at the console of an emulated host, step by step, for
// tests/lab/scenarios/console.py. Reads a line of JSON for each step, {"step": name, …}, and answers
// it with one: {"done": what was seen} or {"failed": why}. Pictures go to FOLDER. Needs NODE_PATH.
const path = require("node:path");
const { createInterface } = require("node:readline");
const { chromium } = require("playwright-core");

const [url, folder] = process.argv.slice(2);
const PATIENCE_MS = 300_000; // the emulated host's VM proves RDMA on an emulated CPU
const VIEW = { width: 1000, height: 620 };

const trouble = [];
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
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
  },

  async leave() {
    await page.context().browser().close();
    return trouble;
  },
};

async function begin() {
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium", args: ["--disable-gpu", "--font-render-hinting=none"],
  });
  const context = await browser.newContext({
    ignoreHTTPSErrors: true, viewport: VIEW, locale: "en-GB", timezoneId: "UTC",
    colorScheme: "light", reducedMotion: "reduce",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.exposeBinding("vfmgrViolation", (_, what) => trouble.push(what));
  await context.addInitScript(() => addEventListener("securitypolicyviolation",
    event => window.vfmgrViolation(`${event.effectiveDirective} ${event.blockedURI}`)));
  context.on("weberror", error => trouble.push(error.error().stack));
  page = await context.newPage();
}

async function main() {
  await begin();
  for await (const line of createInterface({ input: process.stdin })) {
    const { step, ...what } = JSON.parse(line);
    let answer;
    try {
      answer = { done: await steps[step](what) ?? null };
    } catch (error) {
      await page.screenshot({ path: path.join(folder, `failed-${step}.png`) });
      answer = { failed: `${error.message}\n${await page.locator("main").innerText()}` };
    }
    console.log(JSON.stringify(answer));
  }
}

main();
