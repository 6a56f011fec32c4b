// SPDX-License-Identifier: Apache-2.0
// How a component follows the store. Each hook draws its component again only when what it follows
// has changed.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { problemIn } from "../transport/api";
import type { Event, Problem } from "../transport/types";
import type { Rows } from "./rows";
import type { Status, Store } from "./store";

function useFollowed(follow: (again: () => void) => () => void, on: unknown[]): void {
  const [, again] = useReducer((count: number) => count + 1, 0);
  // At once: what changes between drawing and an effect after painting would be missed.
  useLayoutEffect(() => follow(() => again(undefined)), on);
}

export function useRow<T>(rows: Rows<T>, key: string | null | undefined): T | undefined {
  useFollowed(again => key == null ? () => undefined : rows.onRow(key, again), [rows, key]);
  return key == null ? undefined : rows.get(key);
}

export function useGroup<T>(rows: Rows<T>, name: string): T[] {
  useFollowed(again => rows.onGroup(name, again), [rows, name]);
  return rows.group(name);
}

export function useKeys<T>(rows: Rows<T>): readonly string[] {
  useFollowed(again => rows.onKeys(again), [rows]);
  return rows.keys();
}

// At most a few times a second.
export function useAll<T>(rows: Rows<T>): readonly T[] {
  useFollowed(again => rows.onAny(again), [rows]);
  return rows.all();
}

export interface Reporting<S> {
  readonly status: S;
  onStatus(listener: () => void): () => void;
}

// Draws the component again whenever what the store says of itself changes.
export function useStatus<S = Status>(store: Reporting<S>): S {
  useFollowed(again => store.onStatus(again), [store]);
  return store.status;
}

export interface Asked<T> {
  answer: T | null;
  problem: Problem | null;
  waiting: boolean; // for an answer, also for another one
  again(): void;
}

// Asks once, again when `on` changes, and again after events that `concerns` picks. An answer that
// is overtaken by another question is dropped.
export function useAnswer<T>(store: Store, question: () => Promise<T>, on: unknown[],
                             concerns: (event: Event) => boolean = () => false): Asked<T> {
  const [state, setState] = useState<Omit<Asked<T>, "again">>(
    { answer: null, problem: null, waiting: true });
  const [turn, again] = useReducer((count: number) => count + 1, 0);
  const latest = useRef(concerns);
  latest.current = concerns;
  useEffect(() => {
    let current = true;
    setState(before => before.waiting ? before : { ...before, waiting: true });
    question().then(
      answer => { if (current) setState({ answer, problem: null, waiting: false }); },
      (error: unknown) => {
        if (!current) return;
        setState(({ answer }) => ({ answer, problem: problemIn(error), waiting: false }));
      });
    return () => { current = false; };
  }, [...on, turn]);
  useEffect(() => store.onEvent(event => {
    if (latest.current(event)) again(undefined);
  }), [store]);
  return { ...state, again: () => again(undefined) };
}
