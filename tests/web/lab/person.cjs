// SPDX-License-Identifier: Apache-2.0
// A person in Chromium who takes steps, for scenarios of the lab: node PROGRAM.cjs URL FOLDER reads a
// line of JSON for each step, {"step": name, …}, and answers it with one: {"done": what was seen} or
// {"failed": why}. Pictures go to FOLDER. The last step is {"step": "leave"}, which returns what pages
// did against their content policy, and what their scripts threw. Needs NODE_PATH.
const path = require("node:path");
const { createInterface } = require("node:readline");
const { chromium } = require("playwright-core");

const [url, folder] = process.argv.slice(2);
const PATIENCE_MS = 300_000; // the emulated host's VM proves RDMA on an emulated CPU

exports.url = url;

exports.picture = async (page, name) => {
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
};

// `of`: where the pages begin whose trouble counts.
async function opened(viewport, of, trouble) {
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium", args: ["--disable-gpu", "--font-render-hinting=none"],
  });
  const context = await browser.newContext({
    ignoreHTTPSErrors: true, viewport, locale: "en-GB", timezoneId: "UTC", colorScheme: "light",
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.exposeBinding("vfmgrViolation", (_, what) => trouble.push(what));
  await context.addInitScript(ours => addEventListener("securitypolicyviolation", event => {
    if (location.pathname.includes(ours))
      window.vfmgrViolation(`${event.effectiveDirective} ${event.blockedURI}`);
  }), of);
  context.on("weberror", error => {
    const { stack } = error.error();
    if (stack.includes(of)) trouble.push(stack);
  });
  return context.newPage();
}

// The page may be about to go.
async function lastLook(page, step) {
  try {
    await exports.picture(page, `failed-${step}`);
    return await page.locator("body").innerText();
  } catch (error) {
    return error.message;
  }
}

exports.takes = async (steps, { viewport, of = "/" }, begin) => {
  const trouble = [];
  const page = await opened(viewport, of, trouble);
  begin(page);
  const all = { ...steps, leave: async () => trouble };
  for await (const line of createInterface({ input: process.stdin })) {
    const { step, ...what } = JSON.parse(line);
    let answer;
    try {
      answer = { done: await all[step](what) ?? null };
    } catch (error) {
      answer = { failed: `${error.message}\n${await lastLook(page, step)}` };
    }
    console.log(JSON.stringify(answer));
  }
  await page.context().browser().close();
};
