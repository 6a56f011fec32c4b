// SPDX-License-Identifier: Apache-2.0
// A verification begun by a person: its options, the plan, the button, and its progress.
import { useState } from "preact/hooks";
import { canAsk, verifyBody, verifyFormOf, verifyQueryOf } from "../../model/verify";
import type { VerifyForm } from "../../model/verify";
import type { Route } from "../../model/paths";
import { Change } from "../../parts/Change";
import { Choice, Field } from "../../parts/fields";
import { text } from "../../text/en";
import type { Attachment, Operation } from "../../transport/types";

const words = text.verification.now;

export function VerifyNow({ attachment, here, route, onBegun, onEnd }: {
  attachment: Attachment; here: string; route: Route; onBegun: (operation: Operation) => void;
  onEnd: () => void;
}) {
  const [form, setForm] = useState(() => verifyFormOf(route.query));
  const [asked, setAsked] = useState<VerifyForm | null>(null);
  const [ended, setEnded] = useState(false);
  const change = (part: Partial<VerifyForm>): void => {
    const next = { ...form, ...part };
    setForm(next);
    setAsked(null);
    setEnded(false);
    const query = new URLSearchParams({ act: "verify", ...verifyQueryOf(next) });
    history.replaceState(history.state, "", `${here}?${query}`);
  };
  return (
    <section class="panel" aria-label={words.title}>
      <h2>{words.title}</h2>
      <Form form={form} change={change} onAsk={() => setAsked(form)} />
      {asked !== null && (
        <Change write={{ method: "post", path: "/v1/attachments/{id}/verifications",
                         values: { id: attachment.id }, body: verifyBody(asked) }}
                act={words.act(attachment.vm)} onBegun={onBegun}
                onEnd={() => { setEnded(true); onEnd(); }} />
      )}
      <p><a href={here}>{ended ? text.vms.close : text.vms.leave}</a></p>
    </section>
  );
}

function Form({ form, change, onAsk }: {
  form: VerifyForm; change: (part: Partial<VerifyForm>) => void; onAsk: () => void;
}) {
  return (
    <form class="fields" onSubmit={event => {
      event.preventDefault();
      if (canAsk(form)) onAsk();
    }}>
      <Choice label={words.profile} value={form.profile} options={words.profiles}
              onChange={profile => change({ profile })} />
      <Field label={words.timeout} value={form.timeout} hint={words.timeoutHint}
             onInput={timeout => change({ timeout })} />
      <details open={form.host !== ""}>
        <summary>{words.responder}</summary>
        <p class="quiet">{words.responderHelp}</p>
        <Field label={words.host} value={form.host} hint={words.hostHint}
               onInput={host => change({ host })} />
        <Field label={words.port} value={form.port} hint={words.portHint}
               onInput={port => change({ port })} />
        <Field label={words.fingerprint} value={form.fingerprint}
               onInput={fingerprint => change({ fingerprint })} />
        <Field label={words.token} value={form.token} onInput={token => change({ token })} />
      </details>
      <button type="submit" disabled={!canAsk(form)}>{words.ask}</button>
      {!canAsk(form) && <p class="quiet">{words.needs}</p>}
    </form>
  );
}
