// SPDX-License-Identifier: Apache-2.0
// The host's NICs and GPUs on its PCIe tree, below the NUMA nodes that they are near.
import { hierarchy } from "d3-hierarchy";
import type { HierarchyNode } from "d3-hierarchy";
import type { HostTree, PfRow } from "../transport/types";

export type Part =
  | { is: "bridge"; addresses: string[] } // ports with nothing beside them are one part
  | { is: "card"; address: string; pfs: string[] } // of one card: its PFs
  | { is: "gpu"; address: string; pf: string | null; distance: string | null };

export interface Branch {
  part: Part;
  below: Branch[];
}

export interface Node {
  numa: number | null; // null: not reported
  roots: HierarchyNode<Branch>[];
}

interface Place {
  address: string;
  numa: number | null;
  above: string[]; // from the root down
}

export function treeOf(topology: HostTree | undefined, pfs: readonly PfRow[]): Node[] {
  const nics = pfs.map(pf => placeOfPf(topology, pf));
  const gpus = (topology?.devices ?? []).filter(device => device.kind === "gpu")
    .map(device => placed(device.place));
  const numas = [...new Set([...nics, ...gpus].map(place => place.numa))].sort(byNumber);
  return numas.map(numa => {
    const roots: Branch[] = [];
    for (const place of nics.filter(one => one.numa === numa)) addPf(roots, place);
    for (const place of gpus.filter(one => one.numa === numa))
      branchAt(roots, place.above).push({ part: gpuPart(topology, place.address), below: [] });
    return { numa, roots: roots.map(joined).map(root => hierarchy(root, one => one.below)) };
  });
}

// Nodes that are not reported come last.
function byNumber(one: number | null, other: number | null): number {
  return (one ?? Infinity) - (other ?? Infinity);
}

function placed(place: HostTree["devices"][number]["place"]): Place {
  return {
    address: place.address, numa: place.numa_node,
    above: place.above.map(port => port.address),
  };
}

// A PF that the tree does not have, such as one that is gone, hangs from its root complex.
function placeOfPf(topology: HostTree | undefined, { info }: PfRow): Place {
  const found = topology?.devices.find(device => device.place.address === info.pci);
  if (found !== undefined) return placed(found.place);
  const above = info.pcie_root === null ? [] : [info.pcie_root];
  return { address: info.pci, numa: info.numa_node, above };
}

function addPf(roots: Branch[], place: Place): void {
  const card = place.address.replace(/\.\d+$/, "");
  const beside = branchAt(roots, place.above);
  const found = beside.map(branch => branch.part)
    .find(part => part.is === "card" && part.address === card);
  if (found?.is === "card") found.pfs.push(place.address);
  else beside.push({ part: { is: "card", address: card, pfs: [place.address] }, below: [] });
}

function branchAt(roots: Branch[], above: readonly string[]): Branch[] {
  let at = roots;
  for (const address of above) {
    let next = at.find(({ part }) => part.is === "bridge" && part.addresses[0] === address);
    if (next === undefined) {
      next = { part: { is: "bridge", addresses: [address] }, below: [] };
      at.push(next);
    }
    at = next.below;
  }
  return at;
}

function gpuPart(topology: HostTree | undefined, address: string): Part {
  const pair = topology?.pairs.find(one => one.gpu === address);
  return { is: "gpu", address, pf: pair?.pf ?? null, distance: pair?.distance ?? null };
}

function joined(branch: Branch): Branch {
  const { part } = branch;
  const below = branch.below.map(joined);
  const [only] = below;
  if (part.is === "bridge" && below.length === 1 && only?.part.is === "bridge") {
    const addresses = [...part.addresses, ...only.part.addresses];
    return { part: { is: "bridge", addresses }, below: only.below };
  }
  return { part, below };
}
