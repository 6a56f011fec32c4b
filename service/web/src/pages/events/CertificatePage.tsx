// SPDX-License-Identifier: Apache-2.0
// The certificate of an attachment that ended, every line of it, to read and to print.
import { useAnswer } from "../../live/hooks";
import { linesOf } from "../../model/certificate";
import type { Line } from "../../model/certificate";
import { useConsole } from "../../parts/context";
import { Facts } from "../../parts/Facts";
import { ProblemBox } from "../../parts/ProblemBox";
import { When } from "../../parts/When";
import { text } from "../../text/en";
import type { Certificate } from "../../transport/types";
import { hrefOfOperation, hrefOfVf } from "../links";

const words = text.events.certificate;

export function CertificatePage({ attachment }: { attachment: string }) {
  const { api, store } = useConsole();
  const { answer, problem, again } = useAnswer(store,
    () => api.get("/v1/attachments/{id}/certificate", { id: attachment }), [attachment],
    event => event.attachment === attachment);
  if (answer === null) {
    return (
      <>
        <h1>{words.title}</h1>
        {problem === null ? <p role="status">{words.reading}</p>
          : <ProblemBox problem={problem} again={again} />}
      </>
    );
  }
  return (
    <article class="certificate">
      <h1>{words.title}</h1>
      <p class="result">{words.heading(answer)}</p>
      <p>{words.lead}</p>
      <CertificateFacts certificate={answer} />
      <Tables certificate={answer} />
      <p class="no-print">
        <button type="button" onClick={() => print()}>{words.print}</button>
      </p>
    </article>
  );
}

function CertificateFacts({ certificate }: { certificate: Certificate }) {
  const { vf, attached, detached, reset } = certificate;
  const names = words.facts;
  const recorded = (value: string | null | undefined) => value ?? words.notRecorded;
  const at = (value: string | null | undefined) =>
    value == null ? words.notRecorded : <When at={value} />;
  const operation = (id: string | null) =>
    id === null ? words.notRecorded : <a href={hrefOfOperation(id)}>{id}</a>;
  return (
    <>
      <Facts facts={[
        [names.vf, <a href={hrefOfVf(vf)}>{text.events.vf(vf.index, vf.pf)}</a>],
        [names.pci, certificate.vf_pci],
        [names.attachment, certificate.attachment],
        [names.vm, certificate.vm],
      ]} />
      <Facts facts={[
        [names.attached, at(attached.at)],
        [names.attachedBy, recorded(attached.requested_by)],
        [names.attachedIn, operation(attached.operation)],
      ]} />
      <Facts facts={[
        [names.detached, at(detached.at)],
        [names.detachedBy, recorded(detached.requested_by)],
        [names.detachedIn, operation(detached.operation)],
      ]} />
      <Facts facts={[
        [names.reset, reset === null ? words.notRecorded : words.method(reset.method)],
        [names.resetDone, at(reset?.done_at)],
        [names.observed, <When at={certificate.observed_at} />],
        [names.driver, certificate.driver ?? words.unbound],
      ]} />
    </>
  );
}

function Tables({ certificate }: { certificate: Certificate }) {
  const { settings, addresses, counters } = linesOf(certificate);
  return (
    <>
      <LineTable title={words.settings} heads={[words.setting, words.before, words.now]}
                 lines={settings} />
      {addresses.length === 0 ? <><h2>{words.addresses}</h2><p>{words.sameAddress}</p></> : (
        <LineTable title={words.addresses} lines={addresses}
                   heads={[words.address, words.attachedAddress, words.now]} />
      )}
      {counters === null ? <><h2>{words.counters}</h2><p>{words.noCounters}</p></> : (
        <LineTable title={words.counters} heads={[words.counter, words.beforeReset]}
                   lines={counters} />
      )}
    </>
  );
}

function LineTable({ title, heads, lines }: {
  title: string; heads: readonly string[]; lines: readonly Line[];
}) {
  return (
    <>
      <h2>{title}</h2>
      <table class="lines">
        <thead><tr>{heads.map(head => <th key={head} scope="col">{head}</th>)}</tr></thead>
        <tbody>
          {lines.map(([name, ...values]) => (
            <tr key={name}>
              <td data-title={heads[0]}>{words.name(name)}</td>
              {values.map((value, at) => (
                <td key={at} data-title={heads[at + 1]}>{words.value(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
