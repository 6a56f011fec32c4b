// SPDX-License-Identifier: Apache-2.0
// In Cockpit a person acts with their own rights, or with administrative access, which is root's.
export type Unreached = "not allowed" | "limited access" | "no answer";

// Why a request had no answer, from what Cockpit says of it. It has no code of its own for a socket
// that a person may not use: Debian 12's says "access-denied", Debian 13's "not-found" or
// "terminated" with the system's message.
export function whyUnreached(elevated: boolean, code: string, message: string): Unreached {
  const isDenied = code === "access-denied";
  if (elevated) return isDenied ? "limited access" : "no answer";
  return isDenied || /permission denied/i.test(message) ? "not allowed" : "no answer";
}
