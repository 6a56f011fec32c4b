// SPDX-License-Identifier: Apache-2.0
// One token: what it may do, another secret for it, and its end.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { GRACES, isOwn } from "../../model/tokens";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { Choice } from "../../parts/fields";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { NewToken, Token } from "../../transport/types";
import { hashHere } from "../links";
import { Secret } from "./Secret";

const words = text.settings.tokens;

export function TokenPage({ id, token, act }: {
  id: string; token: Token | undefined; act: string | null;
}) {
  const { session } = useConsole();
  const here = hashHere("settings", "tokens", id);
  return (
    <>
      {token === undefined ? <p role="status">{words.gone(id)}</p> : <Facts token={token} />}
      {isOwn({ id }, session.who) && <p class="remark">{words.own}</p>}
      {act === "rotate" && <Rotate id={id} />}
      {act === "revoke" && <Revoke id={id} />}
      {act === null && token !== undefined && (
        <div class="acts">
          <a class="button" href={`${here}?act=rotate`}>{words.rotate}</a>
          <a class="button danger" href={`${here}?act=revoke`}>{words.revoke}</a>
        </div>
      )}
    </>
  );
}

function Facts({ token }: { token: Token }) {
  const { table } = words;
  const facts: [string, ComponentChildren][] = [
    [table.role, token.role],
    [table.description, token.description || text.none],
    [table.scopes, token.scopes?.join(" ") ?? words.allScopes],
    [table.tenant, token.tenant ?? words.noTenant],
    [table.created, <When at={token.created_at} />],
    [table.rotated, <When at={token.rotated_at} />],
    [table.expires, <When at={token.expires_at} />],
    [table.used, <When at={token.last_used_at} />],
    [table.from, token.last_used_from ?? text.none],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function Rotate({ id }: { id: string }) {
  const [grace, setGrace] = useState<typeof GRACES[number]>("3600");
  const [made, setMade] = useState<NewToken | null>(null);
  return (
    <section class="panel" aria-label={words.rotateTitle}>
      <h3>{words.rotateTitle}</h3>
      {made === null && (
        <Choice label={words.grace} value={grace} onChange={setGrace}
                options={GRACES.map(seconds => [seconds, words.graceFor(seconds)])} />
      )}
      <Change write={{ method: "post", path: "/v1/tokens/{id}/rotate", values: { id },
                       body: { grace_seconds: Number(grace) } }}
              act={words.rotateAct(id)} confirm={id} noSteps={words.noSteps} onDone={setMade} />
      {made !== null && <Secret token={made} onHide={() => setMade(null)} />}
      <Leave id={id} isDone={made !== null} />
    </section>
  );
}

function Revoke({ id }: { id: string }) {
  const [isDone, setDone] = useState(false);
  return (
    <section class="panel" aria-label={words.revokeTitle}>
      <h3>{words.revokeTitle}</h3>
      <Change write={{ method: "delete", path: "/v1/tokens/{id}", values: { id } }}
              act={words.revokeAct(id)} confirm={id} noSteps={words.noSteps}
              onEnd={() => setDone(true)} />
      <Leave id={id} isDone={isDone} />
    </section>
  );
}

function Leave({ id, isDone }: { id: string; isDone: boolean }) {
  return (
    <p>
      <a href={hashHere("settings", "tokens", id)}>
        {isDone ? text.settings.objects.close : text.settings.objects.leave}
      </a>
    </p>
  );
}
