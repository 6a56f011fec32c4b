// SPDX-License-Identifier: Apache-2.0
// Buttons that copy rows as CSV and as JSON.
import { useState } from "preact/hooks";
import { csvOf, jsonOf } from "../model/table";
import type { Column } from "../model/table";
import { text } from "../text/en";

export function Copy<T>({ rows, columns }: {
  rows: readonly T[]; columns: readonly Column<T>[];
}) {
  const [copied, setCopied] = useState("");
  const copy = (name: string, content: string): void => {
    navigator.clipboard.writeText(content).then(
      () => setCopied(text.table.copied(rows.length, name)),
      () => setCopied(text.table.notCopied));
  };
  return (
    <>
      <button type="button" onClick={() => copy("CSV", csvOf(rows, columns))}>
        {text.table.copyAs("CSV")}
      </button>
      <button type="button" onClick={() => copy("JSON", jsonOf(rows, columns))}>
        {text.table.copyAs("JSON")}
      </button>
      <span role="status">{copied}</span>
    </>
  );
}
