// SPDX-License-Identifier: Apache-2.0
// The words of what only a console in Cockpit has.
import type { Unreached } from "../model/rights";

const UNREACHED = {
  "not allowed": {
    title: "vfmgrd does not let you connect",
    detail: "Your user may not use /run/vfmgr/vfmgr.sock.",
    remedy: "Have an admin add you to group vfmgr, and sign in to Cockpit again.",
  },
  "limited access": {
    title: "Cockpit has limited access",
    detail: "Cockpit does not act as an administrator for you now.",
    remedy: "Turn on administrative access at the top of Cockpit's page.",
  },
  "no answer": {
    title: "vfmgrd does not answer",
    detail: "Nothing answers on /run/vfmgr/vfmgr.sock of this host.",
    remedy: "On the host: systemctl status vfmgrd.socket vfmgrd.service",
  },
};

export const cockpit = {
  asking: "Asking Cockpit who is signed in …",
  unreached: (why: Unreached) => UNREACHED[why],
  elevate: "Administrative access",
  elevateAbout: (name: string) =>
    `With administrative access you act as root, and the audit says root instead of ${name}.`,
  elevating: "Asking Cockpit for administrative access …",
  elevated: (name: string) => `${name}, as root`,
  giveUp: (name: string) => `Act as ${name}`,
};
