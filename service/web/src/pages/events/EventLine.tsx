// SPDX-License-Identifier: Apache-2.0
// An event in a line: what happened, to what, and in the host's words why.
import { useRow } from "../../live/hooks";
import { severityOf } from "../../model/events";
import { vfKey } from "../../model/cells";
import { useConsole } from "../../parts/context";
import { VerdictMark } from "../../parts/VerdictMark";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Event } from "../../transport/types";
import {
  hrefOfAttachmentRuns, hrefOfCertificate, hrefOfOperation, hrefOfVf, hrefOfVm,
} from "../links";
import { Detail } from "./Detail";

const words = text.events;

export function EventLine({ event, withOperation = true }: {
  event: Event; withOperation?: boolean;
}) {
  const severity = severityOf(event);
  return (
    <div class="event">
      <When at={event.at} />{" "}
      <span class={`severity ${severity}`} title={words.severity(severity)}>
        {words.kind(event.kind)}
      </span>{" "}
      {event.verdict !== null && <><VerdictMark verdict={event.verdict} />{" "}</>}
      <Subjects event={event} />
      {event.detail !== "" && <> <Detail detail={event.detail} /></>}
      {withOperation && event.operation !== null && (
        <> · <a href={hrefOfOperation(event.operation)}>
          {words.unknownOperation(event.operation)}
        </a></>
      )}
      {event.certificate !== null && event.attachment !== null && (
        <> · <a href={hrefOfCertificate(event.attachment)}>{words.certificateLink}</a></>
      )}
    </div>
  );
}

function Subjects({ event }: { event: Event }) {
  const { store } = useConsole();
  const { pf, vf, vm, attachment, detail } = event;
  const row = useRow(store.pfs, pf);
  const name = row?.info.ifname || (pf ?? "");
  // What the detail names, and what leads nowhere, need not be said twice.
  const others = (Object.keys(words.others) as (keyof typeof words.others)[])
    .filter(one => event[one] !== null && !detail.includes(event[one]));
  if (pf === null && !vm && attachment === null && others.length === 0) return null;
  return (
    <span class="subjects">
      {pf !== null && vf === null && !detail.includes(name) && <span>{words.pf(name)}</span>}
      {pf !== null && vf !== null && (
        <a href={hrefOfVf({ pf, index: vf })} title={vfKey(pf, vf)}>{words.vf(vf, name)}</a>
      )}
      {vm !== null && vm !== "" && <a href={hrefOfVm(vm)}>{words.vm(vm)}</a>}
      {attachment !== null && (
        <a href={hrefOfAttachmentRuns(attachment)}>{words.attachment(attachment)}</a>
      )}
      {others.map(one => <span key={one}>{words.others[one]} {event[one]}</span>)}
    </span>
  );
}
