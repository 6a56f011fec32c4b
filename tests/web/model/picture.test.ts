// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { vfKey } from "../../../service/web/src/model/cells";
import { CELL, fitted, linesPath, pictureOf } from "../../../service/web/src/model/picture";
import type { Box, Picture } from "../../../service/web/src/model/picture";
import { treeOf } from "../../../service/web/src/model/tree";
import type { HostTree } from "../../../service/web/src/transport/types";
import { pf } from "./bodies";

const PFS = 8;
const VFS = 120;
const pfs = Array.from({ length: PFS }, (_, at) => {
  const info = pf({}).info;
  return pf({ info: { ...info, pci: `0000:${at + 10}:00.0`, numa_node: at % 2 } });
});
const vms = Array.from({ length: 120 }, (_, at) => ({ uuid: `${at}`, name: `vm${at}` }));

function pictured(width: number): Picture {
  return pictureOf({
    nodes: treeOf(undefined, pfs),
    vfsOf: pci => Array.from({ length: VFS }, (_, index) => ({ key: vfKey(pci, index), index })),
    vms,
    heldBy: uuid => [vfKey(`0000:${Number(uuid) % PFS + 10}:00.0`, Number(uuid))],
  }, width);
}

function overlap(one: Box, other: Box): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width
    && one.y < other.y + other.height && other.y < one.y + one.height;
}

for (const width of [320, 700, 1280, 2560]) {
  test(`at ${width} pixels all is inside, and nothing covers anything`, () => {
    const picture = pictured(width);
    assert.equal(picture.cells.size, PFS * VFS);
    const cells = picture.nodes.flatMap(node => node.ports.flatMap(port => port.cells))
      .map(({ x, y }) => ({ x, y, width: CELL, height: CELL }));
    const boxes: Box[] = [...cells, ...picture.vms];
    for (const box of boxes) {
      assert.ok(box.x >= 0 && box.x + box.width <= width, JSON.stringify(box));
      assert.ok(box.y >= 0 && box.y + box.height <= picture.height, JSON.stringify(box));
    }
    const places = new Set(cells.map(({ x, y }) => `${x} ${y}`));
    assert.equal(places.size, cells.length);
    for (const vm of picture.vms)
      for (const other of [...picture.vms.filter(one => one !== vm), ...picture.nodes])
        assert.ok(!overlap(vm, other), `${vm.uuid} at ${JSON.stringify(other)}`);
  });
}

test("VMs stand beside what they hold", () => {
  const [first] = pictured(1280).vms;
  assert.equal(Number(first!.uuid) % 2, 0); // a PF of the first node
});

test("ports of a card are one card, a bridge with one bridge below is one part", () => {
  const place = (address: string, above: string[]) => ({
    kind: "nic" as const, name: "", vendor: 0, device: 0,
    place: {
      address, numa_node: 1, speed_gts: null, width: null,
      above: above.map(one => ({
        address: one, vendor: 0, device: 0, subsystem_vendor: 0, subsystem_device: 0,
      })),
    },
  });
  const topology: HostTree = {
    devices: [place("0000:12:00.0", ["0000:00:01.0", "0000:11:00.0"]),
      place("0000:12:00.1", ["0000:00:01.0", "0000:11:00.0"]),
      { ...place("0000:13:00.0", ["0000:00:02.0"]), kind: "gpu" }],
    pairs: [{ gpu: "0000:13:00.0", pf: "0000:12:00.1", distance: "NODE" }], notes: [],
  };
  const two = ["0000:12:00.0", "0000:12:00.1"].map(pci =>
    pf({ info: { ...pf({}).info, pci, numa_node: 0 } }));
  const [node, ...others] = treeOf(topology, two);
  assert.equal(others.length, 0);
  assert.equal(node?.numa, 1); // as the tree says, which the kernel reads beside the device
  const parts = node.roots.flatMap(root => root.descendants().map(({ data }) => data.part));
  assert.deepEqual(parts, [
    { is: "bridge", addresses: ["0000:00:01.0", "0000:11:00.0"] },
    { is: "card", address: "0000:12:00", pfs: ["0000:12:00.0", "0000:12:00.1"] },
    { is: "bridge", addresses: ["0000:00:02.0"] },
    { is: "gpu", address: "0000:13:00.0", pf: "0000:12:00.1", distance: "NODE" },
  ]);
});

test("a line has one curve for each end", () => {
  const path = linesPath({ x: 100, y: 5 }, [{ x: 10, y: 1 }, { x: 20, y: 2 }], 30);
  assert.equal(path.match(/M100 5C/g)?.length, 2);
});

test("a text that does not fit says so, and a character is never cut", () => {
  assert.equal(fitted("short", 100), "short");
  assert.equal(fitted("\u{1F600}".repeat(20), 36), `${"\u{1F600}".repeat(4)}…`);
});
