// SPDX-License-Identifier: Apache-2.0
// The picture's VFs as a table, for search, for copying, and for those who read tables first.
import { useAll } from "../../live/hooks";
import { cellState, vfKey } from "../../model/cells";
import { useConsole } from "../../parts/context";
import { useKept } from "../../parts/kept";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { text } from "../../text/en";
import type { Attachment, Vf } from "../../transport/types";
import { hrefOfVf } from "../links";

interface Row {
  vf: Vf;
  ifname: string;
  attachment: Attachment | undefined;
  state: string;
}

const words = text.host.table;
const columns: readonly ShownColumn<Row>[] = [
  { name: "vf", title: words.vf, value: ({ vf }) => vfKey(vf.pf, vf.index) },
  { name: "pf", title: words.pf, value: row => row.ifname },
  { name: "state", title: words.state, value: row => row.state },
  { name: "vm", title: words.vm, value: ({ vf }) => vf.vm },
  { name: "network", title: words.network, value: row => row.attachment?.spec.network ?? null },
  { name: "address", title: words.address, value: row => row.attachment?.address ?? null },
  { name: "mac", title: words.mac, value: ({ vf }) => vf.settings.mac ?? null },
  { name: "driver", title: words.driver, value: ({ vf }) => vf.driver },
  { name: "why", title: words.why,
    value: ({ vf }) => [...vf.drift, vf.quarantine?.reason ?? ""].filter(Boolean).join("; ") },
];

export function VfTable() {
  const [open, setOpen] = useKept("table", false);
  return (
    <details class="table-below" open={open} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{words.summary}</summary>
      {open && <Rows />}
    </details>
  );
}

function Rows() {
  const { store } = useConsole();
  const vfs = useAll(store.vfs);
  useAll(store.attachments);
  const rows = vfs.map((vf): Row => {
    const attachment = store.attachments.get(vf.attachment ?? "");
    const pf = store.pfs.get(vf.pf);
    const state = cellState(vf, attachment, { stuck: pf?.stuck != null });
    return { vf, attachment, ifname: pf?.info.ifname ?? "", state: text.cell.state(state) };
  });
  return (
    <Table caption={words.caption} items={rows} columns={columns}
           keyOf={({ vf }) => vfKey(vf.pf, vf.index)}
           href={({ vf }) => hrefOfVf(vf)} />
  );
}
