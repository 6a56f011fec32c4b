// SPDX-License-Identifier: Apache-2.0
// What a page is compared with: the files in ../pictures.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { root } from "./daemon";

export const folder = path.join(root, "tests/web/pictures");
const isToWrite = process.env["VFMGR_UPDATE_PICTURES"] === "1";

// Without what differs from run to run: times and ages; ids, MACs that were drawn by lot.
export function lasting(tree: string): string {
  return tree
    .replaceAll(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g, "MAC") // first: its digits can look like a time
    .replaceAll(/\d+ (second|minute|hour)s? ago|just now/g, "AGE")
    .replaceAll(/\d{1,2} \w{3,4} \d{4},? \d{2}:\d{2}:\d{2}|\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, "TIME")
    .replaceAll(/(?<![\d:])\d{2}:\d{2}:\d{2}(\.\d+)?/g, "TIME")
    .replaceAll(/\b([0-9a-f]{8}|[0-9a-f]{16}|[0-9a-f]{32})\b/g, "ID")
    .replaceAll("\"ID\"", "ID")
    .replaceAll(/[\d.,]+ (µs|ms|s)\b/g, "DURATION");
}

export function compare(name: string, found: string): void {
  const file = path.join(folder, `${name}.txt`);
  if (isToWrite) {
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(file, `${found}\n`);
  }
  assert.equal(`${found}\n`, fs.readFileSync(file, "utf8"),
    `${file}; npm run pictures, in service/web, writes it anew`);
}
