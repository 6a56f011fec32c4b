// SPDX-License-Identifier: Apache-2.0
// Where everything in the host's picture is, for a width in pixels. States are not part of it, so
// that an event moves nothing.
import type { Node, Part } from "./tree";

export const CELL = 12;
const PITCH = CELL + 2;
const LINE = 18;
const INDENT = 14;
const MARGIN = 8;
const VM_LINE = 16;
const WIDE = 640;
const VM_WIDTH = 190;
const VM_COLUMNS_MAX = 3;
const HARDWARE_WIDTH_MIN = 480;
const VM_LINES_WIDTH = 90; // room for the lines between hardware and VMs

export interface Point {
  x: number;
  y: number;
}
export interface Box extends Point {
  width: number;
  height: number;
}
export interface PartBox extends Point {
  part: Part;
  from: Point | null; // of the part above, for the elbow that joins them
}
export interface PortBox extends Point {
  pci: string;
  cells: { key: string; index: number; x: number; y: number }[];
  perRow: number;
}
export interface NodeBox extends Box {
  numa: number | null;
  parts: PartBox[];
  ports: PortBox[];
}
export interface VmBox extends Box {
  uuid: string;
}
export interface Picture {
  width: number;
  height: number;
  nodes: NodeBox[];
  vms: VmBox[];
  cells: ReadonlyMap<string, Point>; // the middle of each VF's cell, by the VF's key
  gpus: ReadonlyMap<string, Point>;
}

export interface Contents {
  nodes: readonly Node[];
  vfsOf: (pci: string) => readonly { key: string; index: number }[];
  vms: readonly { uuid: string; name: string }[];
  heldBy: (uuid: string) => readonly string[]; // keys of VFs
}

export function pictureOf(contents: Contents, width: number): Picture {
  let picture = pictureIn(contents, width, 1);
  // Where there is room, VMs stand beside each other rather than far below what they hold.
  for (let columns = 2; columns <= VM_COLUMNS_MAX; ++columns) {
    const left = width - columns * VM_WIDTH - VM_LINES_WIDTH;
    if (picture.vmsEnd <= picture.nodesEnd || left < HARDWARE_WIDTH_MIN) break;
    picture = pictureIn(contents, width, columns);
  }
  return picture;
}

function pictureIn(contents: Contents, width: number, columns: number):
    Picture & { nodesEnd: number; vmsEnd: number } {
  const wide = width >= WIDE;
  const hardware = wide ? width - columns * VM_WIDTH - VM_LINES_WIDTH : Math.floor(width * 0.6);
  const cells = new Map<string, Point>();
  const gpus = new Map<string, Point>();
  const nodes: NodeBox[] = [];
  let y = MARGIN / 2;
  for (const node of contents.nodes) {
    const box = nodeBox(node, contents, { x: 0.5, y: y + 0.5, width: hardware - 1, height: 0 });
    for (const port of box.ports)
      for (const cell of port.cells) cells.set(cell.key, middle(cell));
    for (const { part, x, y: top } of box.parts)
      if (part.is === "gpu") gpus.set(part.address, { x, y: top + LINE / 2 });
    nodes.push(box);
    y += box.height + MARGIN;
  }
  const left = wide ? hardware + VM_LINES_WIDTH : Math.floor(width * 0.68);
  const vms = vmBoxes(contents, cells, { x: left, y: 0, width: width - left - 1, height: 0 },
    columns);
  const last = vms.at(-1);
  const vmsEnd = last === undefined ? 0 : last.y + last.height + MARGIN;
  return { width, height: Math.max(y, vmsEnd), nodes, vms, cells, gpus, nodesEnd: y, vmsEnd };
}

function middle({ x, y }: Point): Point {
  return { x: x + CELL / 2, y: y + CELL / 2 };
}

function nodeBox(node: Node, contents: Contents, box: Box): NodeBox {
  const parts: PartBox[] = [];
  const ports: PortBox[] = [];
  let y = box.y + LINE + MARGIN;
  for (const root of node.roots) {
    root.eachBefore(({ data, depth, parent }) => {
      const x = box.x + MARGIN + depth * INDENT;
      const above = parent === null ? undefined
        : parts.find(one => one.part === parent.data.part);
      parts.push({ part: data.part, x, y, from: above ? { x: above.x, y: above.y } : null });
      y += LINE;
      if (data.part.is !== "card") return;
      for (const pci of data.part.pfs) {
        const port = portBox(pci, contents, { x: x + INDENT, y }, box.x + box.width - MARGIN);
        ports.push(port);
        y += LINE + Math.ceil(port.cells.length / port.perRow) * PITCH + MARGIN / 2;
      }
    });
  }
  return { ...box, numa: node.numa, height: y - box.y + MARGIN / 2, parts, ports };
}

function portBox(pci: string, contents: Contents, at: Point, right: number): PortBox {
  const perRow = Math.max(1, Math.floor((right - at.x) / PITCH));
  const cells = contents.vfsOf(pci).map(({ key, index }, place) => ({
    key, index,
    x: at.x + (place % perRow) * PITCH,
    y: at.y + LINE + Math.floor(place / perRow) * PITCH,
  }));
  return { pci, ...at, cells, perRow };
}

// VMs are in the order of what they hold, so that lines cross as little as they can.
function vmBoxes(contents: Contents, cells: ReadonlyMap<string, Point>, within: Box,
                 columns: number): VmBox[] {
  const heights = new Map(contents.vms.map(({ uuid }) => {
    const held = contents.heldBy(uuid).flatMap(key => cells.get(key) ?? []);
    const sum = held.reduce((all, point) => all + point.y, 0);
    return [uuid, held.length === 0 ? Infinity : sum / held.length];
  }));
  const ordered = [...contents.vms].sort((one, other) => {
    const [first = 0, second = 0] = [heights.get(one.uuid), heights.get(other.uuid)];
    return first === second ? (one.name < other.name ? -1 : 1) : first - second;
  });
  const pitch = within.width / columns;
  return ordered.map(({ uuid }, place) => ({
    uuid,
    x: within.x + (place % columns) * pitch + 0.5,
    y: LINE + MARGIN + Math.floor(place / columns) * (VM_LINE + 4) + 0.5,
    width: pitch - (columns === 1 ? 0 : MARGIN),
    height: VM_LINE,
  }));
}

// From a VM to what it holds, as one path for all of it.
export function linesPath(from: Point, to: readonly Point[], bend: number): string {
  return to.map(({ x, y }) => {
    const end = x + CELL / 2;
    return `M${from.x} ${from.y}C${from.x - bend} ${from.y} ${end + bend} ${y} ${end} ${y}`;
  }).join("");
}

// Text that a box has no room for ends in "…"; the whole is in the label.
export function fitted(text: string, width: number): string {
  const CHARACTER = 7.2;
  const room = Math.max(1, Math.floor(width / CHARACTER));
  const letters = [...text];
  return letters.length <= room ? text : `${letters.slice(0, room - 1).join("")}…`;
}
