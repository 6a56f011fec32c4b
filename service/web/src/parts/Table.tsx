// SPDX-License-Identifier: Apache-2.0
// A table that sorts, filters and copies. Its rows are reached with Tab once, then with the arrow
// keys; Enter follows the row's link.
import type { ComponentChildren } from "preact";
import { useId, useMemo, useRef, useState } from "preact/hooks";
import { filtered, sorted } from "../model/table";
import type { Column, Order } from "../model/table";
import { text } from "../text/en";
import { Copy } from "./Copy";
import { useKept } from "./kept";

export interface ShownColumn<T> extends Column<T> {
  shown?: (item: T) => ComponentChildren; // absent: the value
}

export interface TableProps<T> {
  caption: string;
  items: readonly T[];
  columns: readonly ShownColumn<T>[];
  keyOf: (item: T) => string;
  href?: (item: T) => string | null; // where a row leads
  order?: Order; // at first
  step?: number; // how many rows of a long list are drawn until more are asked for
}

export function Table<T>(props: TableProps<T>) {
  const { caption, items, columns, keyOf, href, order: first, step = Infinity } = props;
  const [order, setOrder] = useKept<Order | null>(`${caption}: order`, first ?? null);
  const [words, setWords] = useKept(`${caption}: words`, "");
  const [most, setMost] = useState(step);
  const all = useMemo(() => sorted(filtered(items, columns, words), columns, order),
    [items, columns, words, order]);
  const rows = all.slice(0, most);
  const body = useRef<HTMLTableSectionElement>(null);
  return (
    <div class="table">
      <Tools rows={all} all={items.length} columns={columns} words={words} onWords={given => {
        setWords(given);
        setMost(step);
      }} />
      <div class="scrolls">
        <table>
          <caption>{caption}</caption>
          <thead>
            <tr>{columns.map(column => (
              <Head key={column.name} column={column} order={order} onOrder={setOrder} />
            ))}</tr>
          </thead>
          <tbody ref={body} onKeyDown={event => moved(event, body.current)}>
            {rows.map((item, at) => {
              const to = href?.(item) ?? null;
              return (
                <tr key={keyOf(item)} tabIndex={at === 0 ? 0 : -1} data-href={to ?? undefined}>
                  {columns.map((column, place) => {
                    const cell = column.shown?.(item) ?? cellText(column.value(item));
                    return (
                      <td key={column.name} data-title={column.title}>
                        {place === 0 && to !== null ? <a href={to} tabIndex={-1}>{cell}</a> : cell}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {all.length > most && (
        <p><button type="button" onClick={() => setMost(most + step)}>
          {text.table.more(Math.min(step, all.length - most))}
        </button></p>
      )}
      {rows.length === 0 && (
        <p class="quiet">{words === "" ? text.table.empty : text.table.none}</p>
      )}
    </div>
  );
}

function cellText(value: string | number | boolean | null): string {
  if (value === null) return text.notReported;
  return typeof value === "boolean" ? text.yesNo(value) : String(value);
}

function Head<T>({ column, order, onOrder }: {
  column: Column<T>; order: Order | null; onOrder: (order: Order) => void;
}) {
  const sort = order?.column !== column.name ? "none"
    : order.descending ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={sort}>
      <button type="button" class="head"
              onClick={() => onOrder({ column: column.name, descending: sort === "ascending" })}>
        {column.title}
      </button>
    </th>
  );
}

function Tools<T>({ rows, all, columns, words, onWords }: {
  rows: readonly T[]; all: number; columns: readonly Column<T>[]; words: string;
  onWords: (words: string) => void;
}) {
  const id = useId();
  return (
    <div class="tools">
      <label for={id}>{text.table.filter}</label>
      <input id={id} type="search" value={words}
             onInput={event => onWords(event.currentTarget.value)} />
      <span class="quiet">{text.table.count(rows.length, all)}</span>
      <Copy rows={rows} columns={columns} />
    </div>
  );
}

function moved(event: KeyboardEvent, body: HTMLTableSectionElement | null): void {
  const row = event.target;
  if (!(row instanceof HTMLTableRowElement) || body === null) return;
  const rows = [...body.rows];
  const at = rows.indexOf(row);
  const places: Record<string, number> = {
    ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1,
  };
  if (event.key === "Enter" && row.dataset["href"] !== undefined) {
    location.hash = row.dataset["href"];
    return;
  }
  const place = places[event.key];
  if (place === undefined) return;
  event.preventDefault();
  rows[place]?.focus();
}
