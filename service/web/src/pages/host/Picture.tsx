// SPDX-License-Identifier: Apache-2.0
// The host as SVG. What an event can change are components of their own.
import { useMemo } from "preact/hooks";
import { memo } from "../../parts/memo";
import { useGroup, useRow } from "../../live/hooks";
import { Signal } from "../../live/signal";
import { cellState, countStates } from "../../model/cells";
import { fitted } from "../../model/picture";
import type { NodeBox, PartBox, Picture as PictureBody, PortBox } from "../../model/picture";
import { useConsole } from "../../parts/context";
import { text } from "../../text/en";
import { Cell } from "./Cell";
import { Lines, VmLabel } from "./VmBox";

const MANY_CELLS = 200; // the lines of so many are drawn fainter

// What the mouse or the keyboard is at: a VF's key or a VM's UUID.
export type At = { vf: string } | { vm: string } | null;

export const Picture = memo(({ picture, at }: { picture: PictureBody; at: Signal<At> }) => (
  <svg class={picture.cells.size > MANY_CELLS ? "picture many" : "picture"} role="group"
       width={picture.width} height={picture.height}
       aria-label={text.host.picture}
       onMouseOver={event => at.set(placeOf(event.target))}
       onMouseLeave={() => at.set(null)}
       onFocusIn={event => at.set(placeOf(event.target))}
       onKeyDown={moved}>
    {picture.nodes.map(({ numa, x, y, width, height }) => (
      <rect key={numa} class="node" x={x} y={y} width={width} height={height} rx={4} />
    ))}
    {picture.vms.map(vm => <Lines key={vm.uuid} vm={vm} picture={picture} at={at} />)}
    {picture.nodes.map(node => <NumaNode key={node.numa} node={node} />)}
    {picture.vms.length > 0 && (
      <text class="title" x={picture.vms[0]!.x} y={18}>{text.host.vms(picture.vms.length)}</text>
    )}
    {picture.vms.map(vm => <VmLabel key={vm.uuid} vm={vm} at={at} />)}
  </svg>
));

function placeOf(target: EventTarget | null): At {
  const element = target instanceof Element ? target.closest("[data-vf],[data-vm]") : null;
  if (!(element instanceof SVGElement)) return null;
  const { vf, vm } = element.dataset;
  return vf !== undefined ? { vf } : vm !== undefined ? { vm } : null;
}

function NumaNode({ node }: { node: NodeBox }) {
  return (
    <g role="group" aria-label={text.host.numa(node.numa)}>
      <text class="title" x={node.x + 8} y={node.y + 18}>{text.host.numa(node.numa)}</text>
      {node.parts.map(part => <PciPart key={`${part.x} ${part.y}`} box={part} node={node} />)}
      {node.ports.map(port => (
        <Port key={port.pci} port={port} width={node.x + node.width - port.x} />
      ))}
    </g>
  );
}

function PciPart({ box, node }: { box: PartBox; node: NodeBox }) {
  const { part, x, y, from } = box;
  const label = part.is === "bridge" ? text.host.bridge(part.addresses)
    : part.is === "card" ? text.host.card(part.address)
      : text.host.gpu(part.address, part.distance, part.pf);
  return (
    <g>
      {from && <path class="elbow" d={`M${from.x + 3} ${from.y + 17}V${y + 9}H${x - 2}`} />}
      {part.is === "gpu" && <rect class="gpu" x={x} y={y + 2} width={10} height={14} rx={2} />}
      <text class={part.is} x={part.is === "gpu" ? x + 14 : x} y={y + 13}>
        {fitted(label, node.x + node.width - x)}<title>{label}</title>
      </text>
    </g>
  );
}

function Port({ port, width }: { port: PortBox; width: number }) {
  const { store } = useConsole();
  const pf = useRow(store.pfs, port.pci);
  const stuck = pf?.stuck != null;
  // Kept, because a PF's row changes with each observation, its cells' places don't.
  const cells = useMemo(() => port.cells.map(({ key, index, x, y }, place) => (
    <Cell key={key} id={key} index={index} x={x} y={y} first={place === 0} stuck={stuck} />
  )), [port, stuck]);
  if (pf === undefined) return null;
  return (
    <g role="group" aria-label={text.host.port(pf)} data-per-row={port.perRow}>
      <PortTitle port={port} width={width} label={text.host.port(pf)} stuck={stuck} />
      {cells}
    </g>
  );
}

function PortTitle({ port, width, label, stuck }: {
  port: PortBox; width: number; label: string; stuck: boolean;
}) {
  const { store } = useConsole();
  const vfs = useGroup(store.vfs, port.pci);
  const states = vfs.map(vf =>
    cellState(vf, store.attachments.get(vf.attachment ?? ""), { stuck }));
  const whole = `${label} · ${text.host.counts(countStates(states), vfs.length)}`;
  return (
    <text class="port" x={port.x} y={port.y + 13}>
      {fitted(whole, width)}<title>{whole}</title>
    </text>
  );
}

// Arrow keys move within a port, Enter follows the link as everywhere.
function moved(event: KeyboardEvent): void {
  const cell = event.target instanceof Element ? event.target.closest("a.cell") : null;
  const port = cell?.parentElement;
  if (cell === null || !port) return;
  const cells = [...port.querySelectorAll<SVGAElement>("a.cell")];
  const perRow = Number(port.getAttribute("data-per-row"));
  const steps: Record<string, number> = {
    ArrowLeft: -1, ArrowRight: 1, ArrowUp: -perRow, ArrowDown: perRow,
    Home: -cells.length, End: cells.length,
  };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const place = cells.findIndex(one => one === cell) + step;
  cells[Math.min(cells.length - 1, Math.max(0, place))]?.focus();
}
