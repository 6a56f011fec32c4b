// SPDX-License-Identifier: Apache-2.0
// Rows of a table as a person sorts, filters and copies them.
export type Value = string | number | boolean | null;

export interface Column<T> {
  name: string; // in JSON and as the id of the sort; the title is what a person reads
  title: string;
  value(item: T): Value;
}

export interface Order {
  column: string;
  descending: boolean;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// null is not reported, and comes last in both directions.
function compare(one: Value, other: Value, descending: boolean): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const order = typeof one === "number" && typeof other === "number"
    ? one - other : collator.compare(String(one), String(other));
  return descending ? -order : order;
}

export function sorted<T>(items: readonly T[], columns: readonly Column<T>[],
                          order: Order | null): readonly T[] {
  const column = columns.find(one => one.name === order?.column);
  if (column === undefined || order === null) return items;
  return [...items].sort(
    (one, other) => compare(column.value(one), column.value(other), order.descending));
}

// Every word must be in some column.
export function filtered<T>(items: readonly T[], columns: readonly Column<T>[],
                            words: string): readonly T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(word => word !== "");
  if (wanted.length === 0) return items;
  return items.filter(item => {
    const texts = columns.map(column => String(column.value(item) ?? "").toLowerCase());
    return wanted.every(word => texts.some(text => text.includes(word)));
  });
}

export function csvOf<T>(items: readonly T[], columns: readonly Column<T>[]): string {
  const lines = [columns.map(column => column.name),
    ...items.map(item => columns.map(column => column.value(item)))];
  return lines.map(line => line.map(field).join(",")).join("\r\n") + "\r\n";
}

// A spreadsheet takes a text that begins like a formula for one, and a guest may choose its name.
function field(value: Value): string {
  const text = value === null ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function jsonOf<T>(items: readonly T[], columns: readonly Column<T>[]): string {
  return JSON.stringify(items.map(item =>
    Object.fromEntries(columns.map(column => [column.name, column.value(item)]))), null, 2);
}
