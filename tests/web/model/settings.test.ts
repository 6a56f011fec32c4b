// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import eventExample from "../../../api/examples/event.json";
import networkExample from "../../../api/examples/network.json";
import poolExample from "../../../api/examples/pool.json";
import {
  carriers, changesDesired, changesPfSpec, selection,
} from "../../../service/web/src/model/settings";
import type { Event, Network, Pool } from "../../../service/web/src/transport/types";

const event = (part: Partial<Event>): Event => ({ ...eventExample as Event, ...part });

test("a network's PFs have the names that people know", () => {
  assert.equal(carriers(networkExample as Network, pci => pci === "0000:01:00.0" ? "ens1" : pci),
    "ens1 192.168.100.1, 0000:02:00.0 192.168.100.2");
  assert.equal(carriers({ prefix: "10.0.0.0/24" }, pci => pci), "");
});

test("a pool's selection names only what it selects by", () => {
  assert.equal(selection(poolExample as Pool),
    "pfs 0000:01:00.0/0-3 or 0000:02:00.0, drivers mlx5_core, devices 15b3:101d, "
    + "numa nodes 0 or 1, link layers ethernet, pcie roots pci0000:3a, rail=0, rdma true");
  assert.equal(selection({ select: { pfs: [], labels: {}, rdma: false } }), "rdma false");
  assert.equal(selection({}), "");
});

test("only events of what is desired make the document be read again", () => {
  assert.ok(changesDesired(event({ kind: "network_changed" })));
  assert.ok(changesDesired(event({ kind: "identities_changed" })));
  assert.ok(!changesDesired(event({ kind: "verified" })));
  assert.ok(!changesDesired(event({ kind: "tenant_changed" })));
});

test("a PF's spec is read again after events of this PF, and when addresses moved", () => {
  const pf = "0000:01:00.0";
  assert.ok(changesPfSpec(event({ kind: "pf_configured", pf }), pf));
  assert.ok(!changesPfSpec(event({ kind: "pf_configured", pf: "0000:02:00.0" }), pf));
  assert.ok(!changesPfSpec(event({ kind: "drift", pf }), pf));
  assert.ok(changesPfSpec(event({ kind: "pf_rekeyed", pf: "0000:02:00.0" }), pf));
});
