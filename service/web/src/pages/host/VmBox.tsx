// SPDX-License-Identifier: Apache-2.0
// A VM in the picture, and the lines to the VFs and GPUs that it holds.
import { useGroup, useRow } from "../../live/hooks";
import type { Signal } from "../../live/signal";
import { useSignal } from "../../live/signal";
import { isProved, vfKey } from "../../model/cells";
import { fitted, linesPath } from "../../model/picture";
import type { Picture, VmBox as Box } from "../../model/picture";
import { useConsole } from "../../parts/context";
import { text } from "../../text/en";
import { hrefOfVm } from "../links";
import type { At } from "./Picture";

export function Lines({ vm, picture, at }: { vm: Box; picture: Picture; at: Signal<At> }) {
  const { store } = useConsole();
  const body = useRow(store.vms, vm.uuid);
  const keys = useGroup(store.attachments, vm.uuid).map(({ vf }) => vfKey(vf.pf, vf.index));
  const marked = useSignal(at, place => isAt(place, vm.uuid, keys));
  const gpus = new Set([...body?.live ?? [], ...body?.config ?? []].map(device => device.pci));
  const ends = [...keys.map(key => picture.cells.get(key)),
    ...[...gpus].map(pci => picture.gpus.get(pci))].filter(point => point !== undefined);
  if (ends.length === 0) return null;
  const from = { x: vm.x, y: vm.y + vm.height / 2 };
  const bend = Math.min(60, vm.x / 6);
  return <path class={marked ? "line marked" : "line"} d={linesPath(from, ends, bend)} />;
}

function isAt(place: At, uuid: string, keys: readonly string[]): boolean {
  if (place === null) return false;
  return "vm" in place ? place.vm === uuid : keys.includes(place.vf);
}

export function VmLabel({ vm, at }: { vm: Box; at: Signal<At> }) {
  const { store } = useConsole();
  const body = useRow(store.vms, vm.uuid);
  const held = useGroup(store.attachments, vm.uuid);
  const marked = useSignal(at, place =>
    isAt(place, vm.uuid, held.map(({ vf }) => vfKey(vf.pf, vf.index))));
  if (body === undefined) return null;
  const proved = held.filter(isProved).length;
  const label = text.host.vm(body.name, body.state, held.length, proved);
  return (
    <a class={`vm ${body.state}${marked ? " marked" : ""}`} href={hrefOfVm(body.name)}
       data-vm={vm.uuid} aria-label={label}>
      <rect x={vm.x} y={vm.y} width={vm.width} height={vm.height} rx={3} />
      <text x={vm.x + 6} y={vm.y + 12}>{fitted(label, vm.width - 8)}<title>{label}</title></text>
    </a>
  );
}
