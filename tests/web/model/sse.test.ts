// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { frameParser } from "../../../service/web/src/model/sse";

const STREAM = "event: current\nid: 7\ndata: {\"number\":7}\n\nid: 8\ndata: {\"a\":1}\n\n"
  + ": quiet\nid: 9\n\n";
const FRAMES = [
  { event: "current", id: "7", data: "{\"number\":7}" },
  { event: "", id: "8", data: "{\"a\":1}" },
  { event: "", id: "9", data: "" },
];

test("a stream is the same frames wherever it is cut", () => {
  for (let cut = 0; cut <= STREAM.length; ++cut) {
    const parse = frameParser();
    assert.deepEqual([...parse(STREAM.slice(0, cut)), ...parse(STREAM.slice(cut))], FRAMES);
  }
});

test("a comment without an id is no frame, and CRLF ends lines too", () => {
  const parse = frameParser();
  assert.deepEqual(parse(": quiet\r\n\r\nevent: resync\r\nid: 3\r\n\r\n"),
    [{ event: "resync", id: "3", data: "" }]);
});
