// SPDX-License-Identifier: Apache-2.0
import { useEffect, useReducer } from "preact/hooks";
import { ageChangesIn, ageOf } from "../model/time";
import { text } from "../text/en";

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

// A local time; the title has it exactly as the API gave it.
export function When({ at }: { at: string | null }) {
  if (at === null) return <span>{text.never}</span>;
  return <time dateTime={at} title={at}>{local.format(Date.parse(at))}</time>;
}

// "5 minutes ago", and always right.
export function Ago({ at }: { at: string }) {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const then = Date.parse(at);
  useEffect(() => {
    const timer = setTimeout(() => again(undefined), ageChangesIn(then, Date.now()));
    return () => clearTimeout(timer);
  });
  const title = `${local.format(then)} (${at})`;
  return <time dateTime={at} title={title}>{text.ago(ageOf(then, Date.now()))}</time>;
}
