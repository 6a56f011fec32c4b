// SPDX-License-Identifier: Apache-2.0
// node build.mjs: checks the types and makes build/web/bundle, and the same for Cockpit in
// build/web/cockpit, from src and api/openapi.yaml.
// node build.mjs --check: checks the types only, those of the tests of src/model too.
// node build.mjs --test model|browser [REPORTER [WORDS]] [--update-pictures]: runs the tests of
// tests/web/model, or those of tests/web/browser, which need the bundle and the packages of
// tests/web/package.json in build/web-tools. npm ci --ignore-scripts comes first: bundle.cmake.
// node build.mjs --bench NAME ARGUMENT...: runs a program of tests/web/bench, which needs the same.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { pageOfCockpit } from "./src/cockpit/page.mjs";

const KIB = 1024;
const FIRST_LOAD_KIB_MAX = 120;
const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../..");
const out = path.join(root, "build/web");
const browserTools = path.join(root, "build/web-tools/node_modules");

function run(...command) {
  const done = spawnSync(process.execPath, command, { cwd: here, stdio: "inherit" });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

function tool(name) {
  return path.join(here, "node_modules", name);
}

// A member that the API loses or renames is an error of the types below.
function makeApiTypes() {
  fs.mkdirSync(out, { recursive: true });
  run(tool("openapi-typescript/bin/cli.js"), path.join(root, "api/openapi.yaml"),
    "--default-non-nullable=false", "--output", path.join(out, "api.d.ts"));
}

function check() {
  makeApiTypes();
  run(tool("typescript/bin/tsc"), "--project", "tsconfig.json");
}

async function esbuild() {
  return import("esbuild").catch(() => {
    console.error("service/web: esbuild is not installed: npm ci --ignore-scripts");
    process.exit(1);
  });
}

async function compiled() {
  const { build } = await esbuild();
  const made = await build({
    entryPoints: { app: path.join(here, "src/main.tsx") },
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    outdir: out,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
  });
  return Object.fromEntries(made.outputFiles.map(file => [path.extname(file.path), file.contents]));
}

// The name of a file is its content, so a browser may keep it for ever.
function named(extension, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  return `app-${hash}${extension}`;
}

function write(folder, files) {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files))
    fs.writeFileSync(path.join(folder, name), content);
}

function budget(files) {
  let all = 0;
  for (const [name, content] of Object.entries(files)) {
    const compressed = gzipSync(content, { level: 9 }).length;
    console.log(`${name}: ${(compressed / KIB).toFixed(1)} KiB compressed`);
    all += compressed;
  }
  console.log(`first load: ${(all / KIB).toFixed(1)} KiB of ${FIRST_LOAD_KIB_MAX} KiB`);
  if (all <= FIRST_LOAD_KIB_MAX * KIB) return;
  console.error(`service/web: the first load is over ${FIRST_LOAD_KIB_MAX} KiB`);
  process.exit(1);
}

// The bundle contains these packages, whose licences want to go with them.
function licences() {
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(here, "package.json"), "utf8"));
  return Object.entries(dependencies).map(([name, version]) =>
    `${name} ${version}\n\n${fs.readFileSync(tool(`${name}/LICENSE`), "utf8").trim()}\n`)
    .join("\n\n");
}

async function bundle() {
  check();
  const code = await compiled();
  const script = named(".js", code[".js"]);
  const style = named(".css", code[".css"]);
  const page = fs.readFileSync(path.join(here, "src/index.html"), "utf8")
    .replace("app.js", script).replace("app.css", style);
  const files = {
    "index.html": page,
    [script]: code[".js"],
    [style]: code[".css"],
    "icon.svg": fs.readFileSync(path.join(here, "src/icon.svg")),
  };
  budget(files);
  fs.rmSync(path.join(out, "bundle.key"), { force: true }); // of what bundle.cmake made before
  write(path.join(out, "bundle"), files);
  write(path.join(out, "cockpit"), pageOfCockpit(files));
  write(path.join(out, "licences"), { "LICENCES.txt": licences() });
}

// Makes programs for node of files of tests/web/KIND; returns their paths.
async function programs(kind, isOne) {
  if (kind !== "model") run(tool("typescript/bin/tsc"), "--project", "tsconfig.browser.json");
  const { build } = await esbuild();
  const sources = path.join(root, "tests/web", kind);
  const folder = path.join(out, "tests", kind);
  fs.rmSync(folder, { recursive: true, force: true });
  const entries = fs.readdirSync(sources).filter(isOne);
  await build({
    entryPoints: entries.map(name => path.join(sources, name)),
    absWorkingDir: here,
    bundle: true,
    platform: "node",
    target: "node18",
    // The format in which node looks for packages in NODE_PATH.
    format: "cjs",
    external: ["playwright-core", "axe-core"],
    outExtension: { ".js": ".cjs" },
    outdir: folder,
    sourcemap: "inline",
  });
  process.env.NODE_PATH = browserTools;
  process.env.VFMGR_ROOT = root;
  return entries.map(name => path.join(folder, name.replace(/\.ts$/, ".cjs")));
}

async function test(kind, reporter, words, update) {
  const tests = await programs(kind, name => name.endsWith(".test.ts"));
  if (update) process.env.VFMGR_UPDATE_PICTURES = "1";
  run("--enable-source-maps", "--test", "--test-concurrency=2",
    ...reporter === undefined ? [] : [`--test-reporter=${reporter}`],
    ...words === undefined ? [] : [`--test-name-pattern=${words}`], ...tests);
}

async function bench(name, ...given) {
  run("--enable-source-maps", ...await programs("bench", file => file === `${name}.ts`), ...given);
}

const UPDATE = "--update-pictures"; // writes tests/web/pictures
const [option, ...given] = process.argv.slice(2);
const words = given.filter(word => word !== UPDATE);
if (option === "--check") {
  check();
  run(tool("typescript/bin/tsc"), "--project", "tsconfig.test.json");
} else if (option === "--test") {
  await test(words[0], words[1], words[2], given.includes(UPDATE));
} else if (option === "--bench") {
  await bench(...given);
} else await bundle();
