// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { headOf } from "../../../service/web/src/model/head";
import { whyUnreached } from "../../../service/web/src/model/rights";

const ANSWER = "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-Id: a:b\r\n\r\n"
  + "id: 8\r\n\r\ndata: x\n\n";

test("an answer's head is taken when it is whole, wherever it is cut", () => {
  const end = ANSWER.indexOf("id: 8");
  for (let cut = 0; cut < end; ++cut) assert.equal(headOf(ANSWER.slice(0, cut)), null);
  assert.equal(headOf(ANSWER.slice(0, end))?.rest, "");
  const head = headOf(ANSWER);
  assert.deepEqual(head && [head.status, ...head.headers], [200,
    ["content-type", "text/event-stream"], ["x-request-id", "a:b"]]);
  assert.equal(head?.rest, ANSWER.slice(end));
});

test("what is no answer of HTTP has no status", () => {
  assert.equal(headOf("hello\r\n\r\n")?.status, 0);
  assert.equal(headOf("HTTP/1.1 2000 OK\r\n\r\n")?.status, 0);
  assert.equal(headOf("HTTP/1.1 403 Forbidden\r\n\r\n")?.status, 403);
});

test("a socket that a person may not use is told from one that nobody listens on", () => {
  const denied = "[Errno 13] Permission denied";
  assert.equal(whyUnreached(false, "access-denied", ""), "not allowed");
  assert.equal(whyUnreached(false, "not-found", denied), "not allowed");
  assert.equal(whyUnreached(false, "terminated", denied), "not allowed");
  assert.equal(whyUnreached(false, "not-found", "[Errno 2] No such file or directory"),
    "no answer");
  assert.equal(whyUnreached(false, "", ""), "no answer");
});

test("root is denied nothing by the socket: it is Cockpit that does not elevate", () => {
  assert.equal(whyUnreached(true, "access-denied", ""), "limited access");
  assert.equal(whyUnreached(true, "not-found", "[Errno 111] Connection refused"), "no answer");
});
