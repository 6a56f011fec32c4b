// SPDX-License-Identifier: Apache-2.0
// Bearer tokens: #/settings/tokens, ?act=make; #/settings/tokens/ID, ?act=rotate, ?act=revoke.
import { useAnswer } from "../../live/hooks";
import type { Route } from "../../model/paths";
import { Awaited } from "../../parts/Awaited";
import { useConsole } from "../../parts/context";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { Ago, When } from "../../parts/When";
import { text } from "../../text/en";
import type { Token } from "../../transport/types";
import { hashHere } from "../links";
import { MakeToken } from "./MakeToken";
import { TokenPage } from "./TokenPage";

const words = text.settings.tokens;
const columns: readonly ShownColumn<Token>[] = [
  { name: "id", title: words.table.id, value: one => one.id },
  { name: "role", title: words.table.role, value: one => one.role },
  { name: "description", title: words.table.description, value: one => one.description },
  { name: "scopes", title: words.table.scopes,
    value: one => one.scopes?.join(" ") ?? words.allScopes },
  { name: "tenant", title: words.table.tenant, value: one => one.tenant ?? words.noTenant },
  { name: "created_at", title: words.table.created, value: one => one.created_at,
    shown: one => <When at={one.created_at} /> },
  { name: "expires_at", title: words.table.expires, value: one => one.expires_at,
    shown: one => <When at={one.expires_at} /> },
  { name: "last_used_at", title: words.table.used, value: one => one.last_used_at,
    shown: one => one.last_used_at === null ? text.never : <Ago at={one.last_used_at} /> },
  { name: "last_used_from", title: words.table.from, value: one => one.last_used_from ?? "" },
];

export function Tokens({ route }: { route: Route }) {
  const { api, store } = useConsole();
  const { answer, problem, again } = useAnswer(store, () => api.list("/v1/tokens"), [],
    event => event.token !== null);
  const id = route.parts[2];
  const act = route.query.get("act");
  const here = hashHere("settings", "tokens");
  return (
    <>
      {id !== undefined && <p><a href={here}>{text.settings.back(words.title)}</a></p>}
      <h2>{id === undefined ? words.title : words.one(id)}</h2>
      {id === undefined && <p class="quiet">{words.about}</p>}
      <Awaited answer={answer} problem={problem} again={again}
               reading={text.settings.reading} />
      {answer !== null && id !== undefined && (
        <TokenPage key={id} id={id} token={answer.find(one => one.id === id)} act={act ?? null} />
      )}
      {answer !== null && id === undefined && (
        <>
          {act === "make" ? <MakeToken />
            : <p><a class="button" href={`${here}?act=make`}>{words.make}</a></p>}
          <Table caption={words.table.caption} items={answer} columns={columns}
                 keyOf={one => one.id} href={one => hashHere("settings", "tokens", one.id)}
                 order={{ column: "created_at", descending: true }} />
        </>
      )}
    </>
  );
}
