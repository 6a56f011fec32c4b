// SPDX-License-Identifier: Apache-2.0
// One verification: its verdict with the reasons, what can be expected, losses, each check.
import { figure, durationMs, expectations, lossesBySide } from "../../model/runs";
import { Facts } from "../../parts/Facts";
import { VerdictMark } from "../../parts/VerdictMark";
import { Ago, When } from "../../parts/When";
import { text } from "../../text/en";
import type { Verification } from "../../transport/types";
import { hrefOfAttachmentRuns } from "../links";
import { Checks } from "./Checks";
import { LatencyChart } from "./LatencyChart";

const words = text.verification;

export function RunView({ run, chosen }: { run: Verification; chosen: boolean }) {
  const took = durationMs(run);
  return (
    <section class="run" aria-label={chosen ? words.run.chosen : words.run.latest}>
      <h2>
        {chosen ? words.run.chosen : words.run.latest}{" "}
        <VerdictMark verdict={run.verdict} />{" "}
        <span class="quiet"><Ago at={run.finished_at ?? run.started_at} /></span>
      </h2>
      {run.verdict === "pending" && <p role="status">{words.run.running}</p>}
      <Reasons run={run} />
      <Facts facts={[
        [words.run.started, <When at={run.started_at} />],
        [words.run.took, took === null ? words.run.notEnded : words.run.duration(took)],
        [words.run.path, run.path === null ? words.run.unknownPath : text.vms.path(run.path)],
        [words.run.responder, run.responder ?? words.run.thisHost],
        [words.run.gid, run.peer_gid ?? text.notReported],
        run.vf_guid === undefined ? [words.run.mac, run.vf_mac ?? text.notReported]
          : [words.run.guid, run.vf_guid],
        [words.run.dscp, run.dscp ?? null],
        [words.run.attachment, <a href={hrefOfAttachmentRuns(run.attachment)}>{run.attachment}</a>],
        [words.run.run, <code>{run.run}</code>],
      ]} />
      {run.verdict !== "pending" && (
        <>
          <div class="columns">
            <div>
              <Expected run={run} />
              <GpuDirect run={run} />
            </div>
            <Losses run={run} />
            <LatencyChart run={run} />
          </div>
          <Checks run={run} />
        </>
      )}
    </section>
  );
}

// The verdict's detail repeats that of the test that decided it, so that test is not named twice.
function Reasons({ run }: { run: Verification }) {
  const failed = run.tests.filter(test =>
    test.verdict === "fail" && run.detail !== `${test.name}: ${test.detail ?? ""}`);
  const warnings = run.warnings ?? [];
  if (!run.detail && failed.length === 0 && warnings.length === 0)
    return run.verdict === "pass" ? <p>{words.run.well}</p> : null;
  return (
    <ul class="reasons">
      {run.detail && (
        <Reason title={words.run.reason} detail={run.detail} remedy={run.remedy}
                bad={run.verdict === "fail"} />
      )}
      {failed.map(test => (
        <Reason key={test.name} title={words.run.failed(test.name)} detail={test.detail}
                remedy={test.remedy} bad />
      ))}
      {warnings.map(warning => (
        <Reason key={warning.detail} title={words.run.warning} detail={warning.detail}
                remedy={warning.remedy} />
      ))}
    </ul>
  );
}

function Reason({ title, detail, remedy, bad = false }: {
  title: string; detail: string | undefined; remedy: string | undefined; bad?: boolean;
}) {
  return (
    <li class={bad ? "bad" : undefined}>
      <b>{title}</b> {detail}
      {remedy && <p class="quiet"><b>{words.run.remedy}</b> {remedy}</p>}
    </li>
  );
}

function Expected({ run }: { run: Verification }) {
  const all = expectations(run);
  return (
    <section>
      <h3>{words.expected.title}</h3>
      {all.length === 0 && <p>{words.expected.none}</p>}
      <ul class="bars">
        {all.map(one => (
          <li key={one.test}>
            <b>{words.test(one.test)}</b>{" "}
            {one.is === "given" ? words.expected.given(one) : words.expected.absent(one)}
            {one.is === "given" && (
              <svg class="share" width="100%" height="10" role="img"
                   aria-label={words.expected.bar(words.test(one.test), one.percent)}>
                <rect class="whole" width="100%" height="10" />
                <rect class="part" width={`${Math.min(100, one.percent)}%`} height="10" />
              </svg>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Losses({ run }: { run: Verification }) {
  const sides = lossesBySide(run);
  return (
    <section>
      <h3>{words.losses.title}</h3>
      {run.losses === undefined && <p>{words.losses.unknown}</p>}
      {run.losses !== undefined && sides.length === 0 && <p>{words.losses.none}</p>}
      {sides.map(({ side, losses }) => (
        <div key={side}>
          <h4>{words.losses.side[side]}</h4>
          <ul class="reasons">
            {losses.map(({ counter, detail, remedy }) => (
              <Reason key={`${counter.device} ${counter.source} ${counter.name}`} bad
                      title={words.losses.counter(counter.count, counter.name, counter.device,
                        counter.source)} detail={detail} remedy={remedy} />
            ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

function GpuDirect({ run }: { run: Verification }) {
  const test = run.tests.find(one => one.name === "gpudirect");
  return (
    <section>
      <h3>{words.gpudirect.title} {test && <VerdictMark verdict={test.verdict} />}</h3>
      {test === undefined ? <p>{words.gpudirect.absent}</p> : (
        <p>
          {test.detail || words.gpudirect.noDetail}
          {test.remedy && <span class="quiet"> {words.run.remedy} {test.remedy}</span>}
        </p>
      )}
      {test !== undefined && figure(test, "bandwidth_mbps") !== null && (
        <p>{text.unit.bandwidth(figure(test, "bandwidth_mbps") ?? 0)}</p>
      )}
    </section>
  );
}
