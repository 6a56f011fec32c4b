// SPDX-License-Identifier: Apache-2.0
// All that is desired, as one document.
import { useAnswer } from "../../live/hooks";
import { changesDesired } from "../../model/settings";
import { useConsole } from "../../parts/context";
import { useKept } from "../../parts/kept";
import { ProblemBox } from "../../parts/ProblemBox";
import { text } from "../../text/en";
import { DocumentEditor } from "./DocumentEditor";

const words = text.settings.desired;

export function Desired() {
  const { api, store } = useConsole();
  const [prune, setPrune] = useKept("prune", false);
  const { answer, problem, again } = useAnswer(store, () => api.getRevision("/v1/desired"), [],
    changesDesired);
  return (
    <>
      <h2>{words.title}</h2>
      <p class="quiet">{words.about}</p>
      {answer === null && problem === null && <p role="status">{text.settings.reading}</p>}
      {problem && <ProblemBox problem={problem} again={again} />}
      {answer && (
        <DocumentEditor name="desired" host={answer} act={words.act} confirm={words.apply}
                        target={{ path: "/v1/desired", ...(prune ? { query: { prune } } : {}) }}
                        again={again} fields={() => (
                          <label class="check">
                            <input type="checkbox" checked={prune}
                                   onChange={event => setPrune(event.currentTarget.checked)} />
                            <span>{words.prune}. <span class="quiet">{words.pruneHelp}</span></span>
                          </label>
                        )} />
      )}
    </>
  );
}
