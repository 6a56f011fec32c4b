// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { distinct } from "../../../service/web/src/model/problems";
import type { Problem } from "../../../service/web/src/transport/types";

const problem = (part: Partial<Problem>): Problem => ({
  type: "/v1/problems/forbidden", title: "Not permitted", status: 403, code: "forbidden",
  detail: "no role", ...part,
});

test("what several requests were refused for is one problem", () => {
  const all = [problem({ request_id: "1" }), problem({ request_id: "2" }),
    problem({ detail: "another" }), problem({ code: "unavailable" })];
  assert.deepEqual(distinct(all).map(({ code, detail }) => `${code} ${detail}`),
    ["forbidden no role", "forbidden another", "unavailable no role"]);
  assert.deepEqual(distinct([]), []);
});
