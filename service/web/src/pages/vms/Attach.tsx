// SPDX-License-Identifier: Apache-2.0
// Attaching a VF: the form, then the plan, then the button.
import { useState } from "preact/hooks";
import { useAll, useAnswer } from "../../live/hooks";
import { choosesVf, formOf, queryOf, specOf } from "../../model/attach";
import type { AttachForm } from "../../model/attach";
import type { Route } from "../../model/paths";
import type { VmRow } from "../../model/vms";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { Choice, Field } from "../../parts/fields";
import { ProblemBox } from "../../parts/ProblemBox";
import { text } from "../../text/en";
import type { Network, Operation } from "../../transport/types";
import { hrefOfVm } from "../links";

const words = text.vms.attach;

export function Attach({ vm, route, onBegun }: {
  vm: VmRow; route: Route; onBegun: (operation: Operation) => void;
}) {
  const [form, setForm] = useState(() => formOf(route.query));
  const [asked, setAsked] = useState<AttachForm | null>(null);
  const [ended, setEnded] = useState<Operation | null>(null);
  const change = (part: Partial<AttachForm>): void => {
    const next = { ...form, ...part };
    setForm(next);
    setAsked(null);
    setEnded(null);
    const query = new URLSearchParams({ act: "attach", ...queryOf(next) });
    history.replaceState(history.state, "", `${hrefOfVm(vm.name)}?${query}`);
  };
  return (
    <section class="panel" aria-label={words.title(vm.name)}>
      <h2>{words.title(vm.name)}</h2>
      <Form form={form} change={change} onAsk={() => setAsked(form)} />
      {asked !== null && (
        <Change write={{ method: "post", path: "/v1/attachments", body: specOf(vm.name, asked) }}
                act={words.act(vm.name)} onBegun={onBegun} onEnd={setEnded} />
      )}
      <p><a href={hrefOfVm(vm.name)}>{ended === null ? text.vms.leave : text.vms.close}</a></p>
    </section>
  );
}

function Form({ form, change, onAsk }: {
  form: AttachForm; change: (part: Partial<AttachForm>) => void; onAsk: () => void;
}) {
  const { api, store } = useConsole();
  const networks = useAnswer(store, () => api.list("/v1/networks"), [],
    event => event.network !== null);
  const pools = useAnswer(store, () => api.list("/v1/pools"), [], event => event.pool !== null);
  const problem = networks.problem ?? pools.problem;
  return (
    <form class="fields" onSubmit={event => {
      event.preventDefault();
      if (choosesVf(form)) onAsk();
    }}>
      {problem && <ProblemBox problem={problem} again={networks.again} />}
      <Choice label={words.network} value={form.network} onChange={network => change({ network })}
              options={[["", words.noNetwork],
                ...(networks.answer ?? []).map(one => named(one.name ?? ""))]} />
      {(pools.answer ?? []).length > 0 && (
        <Choice label={words.pool} value={form.pool} onChange={pool => change({ pool })}
                options={[["", words.noPool],
                  ...(pools.answer ?? []).map(one => named(one.name ?? ""))]} />
      )}
      <PfChoice form={form} change={change} network={networks.answer
        ?.find(one => one.name === form.network)} />
      <Field label={words.address} value={form.address} hint={words.addressHint}
             onInput={address => change({ address })} />
      <Choice label={words.verify} value={form.verify} onChange={verify => change({ verify })}
              options={words.verifyOptions} />
      <Choice label={words.persistence} value={form.persistence}
              onChange={persistence => change({ persistence })}
              options={words.persistenceOptions} />
      <label class="check">
        <input type="checkbox" checked={form.near}
               onChange={event => change({ near: event.currentTarget.checked })} />
        {words.near}
      </label>
      <button type="submit" disabled={!choosesVf(form)}>{words.ask}</button>
      {!choosesVf(form) && <p class="quiet">{words.chooseFirst}</p>}
    </form>
  );
}

function named(name: string): [string, string] {
  return [name, name];
}

function PfChoice({ form, change, network }: {
  form: AttachForm; change: (part: Partial<AttachForm>) => void; network: Network | undefined;
}) {
  const pfs = useAll(useConsole().store.pfs).filter(pf => network === undefined
    || network.pfs?.some(one => one.pf === pf.info.pci));
  return (
    <Choice label={words.pf} value={form.pf} onChange={pf => change({ pf })}
            options={[["", words.anyPf],
              ...pfs.map(({ info }): [string, string] =>
                [info.pci, `${info.ifname} ${info.pci}`])]} />
  );
}
