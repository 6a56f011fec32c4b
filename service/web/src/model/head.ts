// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP answer, for the one transport that has bytes and no HTTP client.
export interface Head {
  status: number;
  headers: ReadonlyMap<string, string>; // names in lower case
  rest: string; // what came of the body with it
}

const END = "\r\n\r\n";

// Null while the head is not whole. What is no HTTP has status 0.
export function headOf(text: string): Head | null {
  const end = text.indexOf(END);
  if (end < 0) return null;
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const fields = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first);
  return {
    status: Number(status?.[1] ?? 0), headers: new Map(fields), rest: text.slice(end + END.length),
  };
}
