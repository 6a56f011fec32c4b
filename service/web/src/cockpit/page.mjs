// SPDX-License-Identifier: Apache-2.0
// What makes the console a page of Cockpit: its files in Cockpit's folder of pages.
import { gzipSync } from "node:zlib";

// As vfmgrd sends it with the console, except that Cockpit frames its pages. Cockpit adds what is
// not here from its own: 'self' for connections, with its WebSocket.
const policy = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
  "font-src 'none'", "frame-ancestors 'self'", "base-uri 'none'", "form-action 'none'",
  "require-trusted-types-for 'script'",
];

// The menu's order is that of things which run on the machine, beside VMs and containers. Debian
// 12's Cockpit knows no conditions and shows the page on every host.
const manifest = {
  conditions: [{ "path-exists": "/usr/libexec/vfmgr/vfmgrd" }],
  menu: {
    index: {
      label: "vfmgr",
      order: 55,
      keywords: [{
        matches: ["sr-iov", "vf", "virtual function", "rdma", "nic", "gpudirect", "attach"],
      }],
    },
  },
  "content-security-policy": policy.join("; "),
};

// Takes the bundle's files by name. Cockpit's script comes before the console's. Cockpit sends a
// file that ends with .gz to those who ask for the name without it, and compresses none itself.
export function pageOfCockpit(bundle) {
  const app = '<script type="module"';
  const compressed = Object.entries(bundle).filter(([name]) => /\.(js|css)$/.test(name))
    .map(([name, content]) => [`${name}.gz`, gzipSync(content, { level: 9 })]);
  return {
    "manifest.json": `${JSON.stringify(manifest, null, 2)}\n`,
    "index.html": bundle["index.html"].replace(app,
      `<script src="../base1/cockpit.js"></script>\n${app}`),
    "icon.svg": bundle["icon.svg"],
    ...Object.fromEntries(compressed),
  };
}
