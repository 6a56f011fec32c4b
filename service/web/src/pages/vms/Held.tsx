// SPDX-License-Identifier: Apache-2.0
// A VF that a VM holds: where, with which address, and whether it is proved.
import { useRow } from "../../live/hooks";
import { cellState, vfKey } from "../../model/cells";
import { headline, remarks } from "../../model/figures";
import { markAt } from "../../model/marks";
import { useConsole } from "../../parts/context";
import { VerdictMark } from "../../parts/VerdictMark";
import { Ago, When } from "../../parts/When";
import { text } from "../../text/en";
import type { Attachment, Verification } from "../../transport/types";
import { hrefOfVf, hrefOfVm } from "../links";

export function Held({ attachment }: { attachment: Attachment }) {
  const { store } = useConsole();
  const { vf: place } = attachment;
  const vf = useRow(store.vfs, vfKey(place.pf, place.index));
  const pf = useRow(store.pfs, place.pf);
  const state = vf && cellState(vf, attachment, { stuck: pf?.stuck != null });
  const title = text.vms.vfOf(place.index, pf?.info.ifname ?? place.pf);
  return (
    <li class="panel">
      <h3>
        {state && (
          <svg class={`cell ${state}`} width="12" height="12" aria-hidden="true">
            <path d={markAt(state, 0, 0)} />
          </svg>
        )}
        {vf === undefined ? title : <a href={hrefOfVf(vf)}>{title}</a>}
        {state && <span class="quiet">{text.cell.state(state)}</span>}
      </h3>
      <Facts attachment={attachment} />
      <Verified run={attachment.verification} />
      {vf?.drift.map(sentence => <p key={sentence} class="remark">{sentence}</p>)}
      {vf === undefined && <p class="remark">{text.vms.vfGone(place.index)}</p>}
      <a class="button danger" href={`${hrefOfVm(attachment.vm)}?act=detach&ids=${attachment.id}`}>
        {text.vms.detachBegin(place.index)}
      </a>
    </li>
  );
}

function Facts({ attachment }: { attachment: Attachment }) {
  const { settings, spec } = attachment;
  const words = text.vms.attachment;
  const facts: [string, string | null | undefined][] = [
    [words.address, attachment.address],
    [words.network, spec.network],
    [words.mac, settings.mac],
    [words.vlan, settings.vlan && String(settings.vlan.id)],
    [words.driver, attachment.driver],
    [words.state, text.vms.attachmentState(attachment)],
    [words.id, attachment.id],
    [words.by, attachment.requested_by],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value != null).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
      <div><dt>{words.since}</dt><dd><When at={attachment.created_at} /></dd></div>
    </dl>
  );
}

function Verified({ run }: { run: Verification | null }) {
  if (run === null) return <p><VerdictMark verdict={null} /></p>;
  const figures = text.vms.figures(headline(run));
  return (
    <>
      <p>
        <VerdictMark verdict={run.verdict} />{" "}
        <Ago at={run.finished_at ?? run.started_at} />
        {figures !== "" && ` · ${figures}`}
        {run.path !== null && ` · ${text.vms.path(run.path)}`}
      </p>
      {remarks(run).map(({ detail, remedy }) => (
        <p key={detail} class="remark">{detail} <span class="quiet">{remedy}</span></p>
      ))}
    </>
  );
}
