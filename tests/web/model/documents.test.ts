// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import desired from "../../../api/examples/desired.json";
import {
  documentText, isSame, memberOf, merged, parsed, removedObjects, withMember,
} from "../../../service/web/src/model/documents";
import type { Json } from "../../../service/web/src/model/documents";
import {
  emptyTokenForm, isOwn, tokenRequestOf,
} from "../../../service/web/src/model/tokens";

test("a document is the same after a round trip as text, whatever the order of its members", () => {
  const back = parsed(documentText(desired));
  assert.ok("document" in back);
  assert.ok(isSame(back.document, desired as Json));
  assert.ok(isSame({ a: 1, b: [1, null] }, { b: [1, null], a: 1 }));
  const others = [{ a: 1 }, { a: 1, b: [null, 1] }, { a: 1, b: {} }, { a: 1, c: [1, null] }, [],
    null];
  for (const other of others)
    assert.ok(!isSame({ a: 1, b: [1, null] }, other as Json), JSON.stringify(other));
});

test("what is no JSON says where", () => {
  const wrong = parsed('{\n  "mtu": 9000,\n}\n');
  assert.ok("wrong" in wrong);
  assert.match(wrong.wrong, /line 3 column 1/);
  assert.ok("wrong" in parsed(""));
});

test("what others changed is taken; what both changed stays mine and is named", () => {
  const base = { networks: { train: { mtu: 1500, vlan: 1 }, old: { mtu: 1 } },
    pfs: { a: [1, 2] } };
  const mine = { networks: { train: { mtu: 9000, vlan: 1 }, old: { mtu: 1 }, mine: {} },
    pfs: { a: [1, 3] } };
  const theirs = { networks: { train: { mtu: 4200, vlan: 7 }, "a/b": {} }, pfs: { a: [1, 2] } };
  assert.deepEqual(merged(base, mine, theirs), {
    document: { networks: { train: { mtu: 9000, vlan: 7 }, mine: {}, "a/b": {} },
      pfs: { a: [1, 3] } },
    both: ["/networks/train/mtu"],
  });
});

test("what I took away and others changed is named, and stays away", () => {
  assert.deepEqual(merged({ "a/b": 1, c: 1 }, { c: 1 }, { "a/b": 2, c: 1 }),
    { document: { c: 1 }, both: ["/a~1b"] });
  assert.deepEqual(merged({ a: 1 }, { a: 2 }, {}), { document: { a: 2 }, both: ["/a"] });
});

test("both who did the same are of one mind", () => {
  assert.deepEqual(merged({ a: 1 }, { a: 2 }, { a: 2 }), { document: { a: 2 }, both: [] });
  assert.deepEqual(merged({ a: 1 }, {}, {}), { document: {}, both: [] });
});

test("members that every object inherits are none of a document's", () => {
  assert.deepEqual(merged({}, {}, { constructor: 1 }), { document: { constructor: 1 }, both: [] });
  assert.equal(memberOf("{}", "constructor"), undefined);
});

test("a member is set where it stands, and first if it is new", () => {
  assert.equal(withMember('{"mode": "manage", "num_vfs": 4}', "mode", "enforce"),
    documentText({ mode: "enforce", num_vfs: 4 }));
  assert.equal(withMember('{"num_vfs": 4}', "mode", "observe"),
    documentText({ mode: "observe", num_vfs: 4 }));
  assert.equal(withMember('{"mode": "manage", "num_vfs": 4}', "num_vfs", undefined),
    documentText({ mode: "manage" }));
  assert.equal(withMember("{", "mode", "manage"), null);
  assert.equal(withMember("[]", "mode", "manage"), null);
  assert.equal(memberOf('{"num_vfs": 4}', "num_vfs"), 4);
  assert.equal(memberOf("{", "num_vfs"), undefined);
});

test("only objects that go as a whole are removed", () => {
  const change = (pointer: string, then: unknown) => ({ pointer, now: 1, then, sentence: "" });
  assert.deepEqual(removedObjects([
    change("/networks/storage", null), change("/networks/train/dscp", null),
    change("/pfs/0000:01:00.0", { mode: "manage" }), change("/pools/a~1b", null),
  ]), ["storage", "a/b"]);
});

test("a token's request has only what was chosen", () => {
  assert.deepEqual(tokenRequestOf(emptyTokenForm), { role: "viewer", days: 90 });
  assert.deepEqual(tokenRequestOf({
    role: "operator", description: " build7 ", ends: "never", tenant: "blue",
    scopes: "attachments, operations  attachments",
  }), { role: "operator", description: "build7", never_expires: true, tenant: "blue",
    scopes: ["attachments", "operations"] });
});

test("the token that a session was begun with is known", () => {
  assert.ok(isOwn({ id: "a1b2" }, "token:a1b2"));
  assert.ok(!isOwn({ id: "a1" }, "token:a1b2"));
});
