// SPDX-License-Identifier: Apache-2.0
// Paths of the API and of the console's own pages.
export function path(template: string, values: Readonly<Record<string, string | number>>,
                     query: Readonly<Record<string, string | number | boolean>> = {}): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${template} without ${name}`);
    return encodeURIComponent(value);
  });
  const words = Object.entries(query)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  return words.length === 0 ? filled : `${filled}?${words.join("&")}`;
}

export interface Route {
  parts: string[]; // "#/vms/a%20b" is ["vms", "a b"]
  query: ReadonlyMap<string, string>;
}

export function routeOf(hash: string): Route {
  const [way = "", words = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    parts: way.split("/").filter(part => part !== "").map(decoded),
    query: new Map(new URLSearchParams(words)),
  };
}

// A link that a person has cut off must not break the page.
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hashOf(...parts: (string | number)[]): string {
  return `#/${parts.map(part => encodeURIComponent(part)).join("/")}`;
}

// Pages of a host are the same in a fleet, below #/hosts/NAME. Takes where one is, for that.
export function hashBelow(here: string, ...parts: (string | number)[]): string {
  const below = /^#\/hosts\/[^/?]+/.exec(here)?.[0] ?? "#";
  return below + hashOf(...parts).slice(1);
}

// The host's own API as a fleet passes it on.
export function pathOfHost(host: string, path: string): string {
  return `/v1/hosts/${encodeURIComponent(host)}${path.replace(/^\/v1(?=[/?]|$)/, "")}`;
}
