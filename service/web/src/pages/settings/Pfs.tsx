// SPDX-License-Identifier: Apache-2.0
// PFs: how many VFs each has, and how far vfmgr may change it.
import { useState } from "preact/hooks";
import { useAll, useAnswer, useRow, useStatus } from "../../live/hooks";
import { memberOf, withMember } from "../../model/documents";
import type { Route } from "../../model/paths";
import { changesPfSpec } from "../../model/settings";
import { Awaited } from "../../parts/Awaited";
import { Change } from "../../parts/Change";
import { useConsole } from "../../parts/context";
import { Choice, Field } from "../../parts/fields";
import { ProblemBox } from "../../parts/ProblemBox";
import { Table } from "../../parts/Table";
import type { ShownColumn } from "../../parts/Table";
import { text } from "../../text/en";
import type { PfRow } from "../../transport/types";
import { hashHere } from "../links";
import { DocumentEditor } from "./DocumentEditor";
import { NONE } from "./edited";

const words = text.settings.pfs;
const MODES = ["observe", "manage", "enforce"] as const;

const columns: readonly ShownColumn<PfRow>[] = [
  { name: "pf", title: words.table.pf, value: ({ info }) => info.pci },
  { name: "name", title: words.table.name, value: ({ info }) => info.ifname },
  { name: "device", title: words.table.device, value: ({ info }) => info.device_name },
  { name: "mode", title: words.table.mode,
    value: ({ spec }) => spec === null ? words.notManaged : spec.mode ?? "manage" },
  { name: "vfs", title: words.table.vfs, value: ({ info }) => info.num_vfs,
    shown: ({ info }) => words.ofTotal(info.num_vfs, info.total_vfs) },
  { name: "desired_vfs", title: words.table.desired,
    value: ({ spec }) => spec?.num_vfs ?? words.numVfsHint },
  { name: "networks", title: words.table.networks,
    value: ({ networks }) => networks.join(", ") || text.none },
  { name: "drift", title: words.table.drift, value: ({ drift }) => drift.length },
];

export function Pfs({ route }: { route: Route }) {
  const { store } = useConsole();
  const { loaded, problems } = useStatus(store);
  const pfs = useAll(store.pfs);
  const pci = route.parts[2];
  const problem = problems.get("pfs");
  if (pci !== undefined) return <OnePf key={pci} pci={pci} act={route.query.get("act") ?? null} />;
  return (
    <>
      <h2>{words.title}</h2>
      <p class="quiet">{words.about}</p>
      {problem && <ProblemBox problem={problem} />}
      {!loaded.has("pfs") ? <p role="status">{text.settings.reading}</p> : (
        <Table caption={words.table.caption} items={pfs} columns={columns}
               keyOf={({ info }) => info.pci} order={{ column: "pf", descending: false }}
               href={({ info }) => hashHere("settings", "pfs", info.pci)} />
      )}
    </>
  );
}

function OnePf({ pci, act }: { pci: string; act: string | null }) {
  const { api, store } = useConsole();
  const pf = useRow(store.pfs, pci);
  const { answer, problem, again } = useAnswer(store,
    () => api.getRevision("/v1/pfs/{pci}/spec", { pci }), [], event => changesPfSpec(event, pci));
  const name = pf?.info.ifname || pci;
  const here = hashHere("settings", "pfs", pci);
  return (
    <>
      <p><a href={hashHere("settings", "pfs")}>{text.settings.back(words.title)}</a></p>
      <h2>{name} <span class="quiet">{pci}</span></h2>
      {pf !== undefined && <Facts pf={pf} />}
      <Awaited answer={answer} problem={problem} again={again}
               reading={text.settings.reading} />
      {answer !== null && act === "forget" && <Forget pci={pci} name={name} etag={answer.etag} />}
      {answer !== null && act !== "forget" && (
        <>
          <DocumentEditor name={`pfs/${pci}`} host={answer} act={words.act(name)} confirm={name}
                          target={{ path: "/v1/pfs/{pci}/spec", values: { pci } }} again={again}
                          fields={(content, set) => <Fields content={content} set={set} />} />
          {answer.etag !== NONE && (
            <p><a class="button danger" href={`${here}?act=forget`}>{words.forget}</a></p>
          )}
        </>
      )}
    </>
  );
}

function Facts({ pf: { info, networks, drift } }: { pf: PfRow }) {
  const facts: [string, string][] = [
    [words.facts.now, words.ofTotal(info.num_vfs, info.total_vfs)],
    [words.facts.driver, info.driver],
    [words.facts.link, words.link(info.up, info.carrier)],
    [words.facts.mac, info.mac ?? text.notReported],
    [words.facts.networks, networks.join(", ") || text.none],
  ];
  return (
    <>
      <dl class="facts">
        {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      {drift.map(sentence => <p key={sentence} class="remark">{sentence}</p>)}
    </>
  );
}

// The two members that are changed most, for those who need not know the others.
function Fields({ content, set }: { content: string; set: (content: string | null) => void }) {
  const mode = MODES.find(one => one === memberOf(content, "mode")) ?? "";
  const count = memberOf(content, "num_vfs");
  const unset: readonly (readonly [typeof mode, string])[] = mode === "" ? [["", words.modeUnset]]
    : [];
  return (
    <div class="fields pf-fields">
      <Choice label={words.mode} value={mode}
              options={[...unset, ...MODES.map(one => [one, words.modes(one)] as const)]}
              onChange={chosen => set(withMember(content, "mode", chosen || undefined))} />
      <Field label={words.numVfs} value={count === undefined ? "" : String(count)}
             hint={words.numVfsHint} onInput={typed => {
               const value = typed.trim();
               set(withMember(content, "num_vfs", value === "" ? undefined
                 : /^\d+$/.test(value) ? Number(value) : value));
             }} />
    </div>
  );
}

function Forget({ pci, name, etag }: { pci: string; name: string; etag: string }) {
  const [seen] = useState(etag); // afterwards there is none
  const [isDone, setDone] = useState(false);
  return (
    <section class="panel" aria-label={words.forgetAct(name)}>
      <h2>{words.forgetAct(name)}</h2>
      <p>{words.forgetNone}</p>
      <Change write={{ method: "delete", path: "/v1/pfs/{pci}/spec", values: { pci },
                       ifMatch: seen }}
              act={words.forgetAct(name)} confirm={name} noSteps={words.forgetNone}
              onEnd={() => setDone(true)} />
      <p>
        <a href={hashHere("settings", "pfs", pci)}>
          {isDone ? text.settings.objects.close : text.settings.objects.leave}
        </a>
      </p>
    </section>
  );
}
