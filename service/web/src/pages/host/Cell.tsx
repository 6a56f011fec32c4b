// SPDX-License-Identifier: Apache-2.0
// One VF in the picture. It follows its own VF and attachment, so that an event draws one cell.
import { useRow } from "../../live/hooks";
import { cellState } from "../../model/cells";
import { markAt } from "../../model/marks";
import { useConsole } from "../../parts/context";
import { text } from "../../text/en";
import { hrefOfVf } from "../links";

interface CellProps {
  id: string;
  index: number;
  x: number;
  y: number;
  first: boolean; // of its port: Tab leads here, arrow keys lead on
  stuck: boolean;
}

export function Cell({ id, index, x, y, first, stuck }: CellProps) {
  const { store } = useConsole();
  const vf = useRow(store.vfs, id);
  const attachment = useRow(store.attachments, vf?.attachment ?? null);
  if (vf === undefined) return null;
  const state = cellState(vf, attachment, { stuck });
  return (
    <a class={`cell ${state}`} href={hrefOfVf(vf)} data-vf={id}
       tabIndex={first ? 0 : -1} aria-label={text.host.vf(index, state, vf.vm)}>
      <path d={markAt(state, x, y)} />
    </a>
  );
}
