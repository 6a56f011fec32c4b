// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { useAnswer } from "../../live/hooks";
import { emptyTokenForm, ENDS, ROLES, tokenRequestOf } from "../../model/tokens";
import type { TokenForm } from "../../model/tokens";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { Choice, Field } from "../../parts/fields";
import { useKept } from "../../parts/kept";
import { text } from "../../text/en";
import type { NewToken } from "../../transport/types";
import { hashHere } from "../links";
import { Secret } from "./Secret";

const words = text.settings.tokens;

export function MakeToken() {
  const [form, setForm] = useKept("token", emptyTokenForm);
  const [asked, setAsked] = useState<TokenForm | null>(null);
  const [made, setMade] = useState<NewToken | null>(null);
  const change = (part: Partial<TokenForm>): void => {
    setForm({ ...form, ...part });
    setAsked(null);
  };
  return (
    <section class="panel" aria-label={words.makeTitle}>
      <h3>{words.makeTitle}</h3>
      <Form form={form} change={change} onAsk={() => setAsked(form)} />
      {asked !== null && (
        <Change write={{ method: "post", path: "/v1/tokens", body: tokenRequestOf(asked) }}
                act={words.makeAct(asked.role)} noSteps={words.noSteps} onDone={answer => {
                  setMade(answer);
                  setForm(emptyTokenForm);
                }} />
      )}
      {made !== null && <Secret token={made} onHide={() => setMade(null)} />}
      <p>
        <a href={hashHere("settings", "tokens")}>
          {made === null ? text.settings.objects.leave : text.settings.objects.close}
        </a>
      </p>
    </section>
  );
}

function Form({ form, change, onAsk }: {
  form: TokenForm; change: (part: Partial<TokenForm>) => void; onAsk: () => void;
}) {
  const { api, store } = useConsole();
  const { answer: tenants } = useAnswer(store, () => api.list("/v1/tenants"), [],
    event => event.tenant !== null);
  return (
    <form class="fields" onSubmit={event => {
      event.preventDefault();
      onAsk();
    }}>
      <Choice label={words.role} value={form.role} onChange={role => change({ role })}
              options={ROLES.map(role => [role, role])} />
      <Field label={words.description} value={form.description} hint={words.descriptionHint}
             onInput={description => change({ description })} />
      <Choice label={words.ends} value={form.ends} onChange={ends => change({ ends })}
              options={ENDS.map(ends => [ends, words.endsAfter(ends)])} />
      <Field label={words.scopes} value={form.scopes} hint={words.scopesHint}
             onInput={scopes => change({ scopes })} />
      {tenants !== null && tenants.length > 0 && (
        <Choice label={words.tenant} value={form.tenant} onChange={tenant => change({ tenant })}
                options={[["", words.noTenant],
                  ...tenants.map(({ name = "" }): [string, string] => [name, name])]} />
      )}
      <button type="submit">{words.ask}</button>
    </form>
  );
}
