// SPDX-License-Identifier: Apache-2.0
// Parses server-sent events as api/openapi.yaml describes them.
export interface Frame {
  event: string; // "" for an event, "current", "resync"
  id: string | null;
  data: string;
}

// Returns a function that takes the stream's text part by part and returns the frames that it
// completes. A comment alone makes a frame without data when it moves the id.
export function frameParser(): (part: string) => Frame[] {
  let rest = "";
  return part => {
    const blocks = (rest + part.replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop() ?? "";
    return blocks.map(frameOf).filter(frame => frame.id !== null || frame.data !== "");
  };
}

function frameOf(block: string): Frame {
  const frame: Frame = { event: "", id: null, data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "event") frame.event = value;
    else if (field === "id") frame.id = value;
    else if (field === "data") frame.data += frame.data === "" ? value : `\n${value}`;
  }
  return frame;
}
