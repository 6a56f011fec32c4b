// SPDX-License-Identifier: Apache-2.0
// Networks, pools and tenants: a list, and one of them as a document. One that does not exist is
// made under the address that it will have.
import { useEffect, useState } from "preact/hooks";
import { useAnswer } from "../../live/hooks";
import type { Route } from "../../model/paths";
import { Awaited } from "../../parts/Awaited";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { Field } from "../../parts/fields";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { text } from "../../text/en";
import type { Api, Revision } from "../../transport/api";
import type { Event } from "../../transport/types";
import { hashHere } from "../links";
import { DocumentEditor } from "./DocumentEditor";
import { revisionOrNone } from "./edited";

const words = text.settings.objects;

export interface Kind<T> {
  section: string;
  path: "/v1/networks/{name}" | "/v1/pools/{name}" | "/v1/tenants/{name}";
  words: {
    title: string; about: string; table: { caption: string }; one: (name: string) => string;
  };
  list: (api: Api) => Promise<T[]>;
  concerns: (event: Event) => string | null; // the name of such an object that it is about
  template: unknown;
  columns: readonly ShownColumn<T>[];
}

interface Props<T> {
  kind: Kind<T>;
  route: Route;
}

export function Objects<T extends { name?: string }>({ kind, route }: Props<T>) {
  const name = route.parts[2];
  return name === undefined ? <List kind={kind} />
    : <One key={name} kind={kind} name={name} act={route.query.get("act") ?? null} />;
}

function List<T extends { name?: string }>({ kind }: { kind: Kind<T> }) {
  const { api, store } = useConsole();
  const { answer, problem, again } = useAnswer(store, () => kind.list(api), [],
    event => kind.concerns(event) !== null);
  return (
    <>
      <h2>{kind.words.title}</h2>
      <p class="quiet">{kind.words.about}</p>
      <Awaited answer={answer} problem={problem} again={again}
               reading={text.settings.reading} />
      {answer && (
        <>
          <Table caption={kind.words.table.caption} items={answer} columns={kind.columns}
                 keyOf={one => one.name ?? ""} order={{ column: "name", descending: false }}
                 href={one => hashHere("settings", kind.section, one.name ?? "")} />
          <Make section={kind.section} />
        </>
      )}
    </>
  );
}

function Make({ section }: { section: string }) {
  const [name, setName] = useState("");
  return (
    <form class="fields make" onSubmit={event => {
      event.preventDefault();
      if (name.trim() !== "") location.hash = hashHere("settings", section, name.trim());
    }}>
      <h3>{words.make}</h3>
      <Field label={text.settings.name} value={name} onInput={setName} />
      <button type="submit" disabled={name.trim() === ""}>{text.settings.begin}</button>
    </form>
  );
}

function One<T>({ kind, name, act }: { kind: Kind<T>; name: string; act: string | null }) {
  const { api, store } = useConsole();
  const target = { path: kind.path, values: { name } };
  const { answer, problem, again } = useAnswer(store, () => revisionOrNone(api, target), [],
    event => kind.concerns(event) === name);
  const what = kind.words.one(name);
  const here = hashHere("settings", kind.section, name);
  const isNew = answer?.body === null;
  return (
    <>
      <p><a href={hashHere("settings", kind.section)}>{text.settings.back(kind.words.title)}</a></p>
      <h2>{name}</h2>
      <Awaited answer={answer} problem={problem} again={again}
               reading={text.settings.reading} />
      {answer !== null && act === "remove" && (
        <Remove kind={kind} name={name} host={answer} again={again} />
      )}
      {answer !== null && act !== "remove" && (
        <>
          {isNew && <p>{words.newOne(what)}</p>}
          <DocumentEditor name={`${kind.section}/${name}`} host={answer} template={kind.template}
                          target={target} confirm={name} again={again}
                          act={isNew ? words.makeAct(what) : words.replaceAct(what)} />
          {!isNew && <p><a class="button danger" href={`${here}?act=remove`}>{words.remove}</a></p>}
        </>
      )}
    </>
  );
}

function Remove<T>({ kind, name, host, again }: {
  kind: Kind<T>; name: string; host: Revision<unknown>; again: () => void;
}) {
  // As it was when the person saw it: after the removal there is none.
  const [seen, setSeen] = useState(host);
  const [isStale, setStale] = useState(false);
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (isStale) setSeen(host);
    setStale(false);
  }, [host]);
  const what = kind.words.one(name);
  const here = ["settings", kind.section];
  return (
    <section class="panel" aria-label={words.removeAct(what)}>
      <h2>{words.removeAct(what)}</h2>
      {seen.body === null ? <p role="status">{words.gone(what)}</p> : (
        <Change write={{ method: "delete", path: kind.path, values: { name }, ifMatch: seen.etag }}
                act={words.removeAct(what)} confirm={name} noSteps={words.removes}
                onEnd={() => setDone(true)}
                onProblem={({ code }) => {
                  if (code !== "precondition_failed") return;
                  setStale(true);
                  again();
                }} />
      )}
      <p>
        <a href={isDone || seen.body === null ? hashHere(...here) : hashHere(...here, name)}>
          {isDone ? words.close : words.leave}
        </a>
      </p>
    </section>
  );
}
