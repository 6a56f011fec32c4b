// SPDX-License-Identifier: Apache-2.0
// All that is desired, as one document.
import { useAnswer } from "../../live/hooks";
import { changesDesired } from "../../model/settings";
import { Awaited } from "../../parts/Awaited";
import { useConsole } from "../../parts/context";
import { useKept } from "../../parts/kept";
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
      <Awaited answer={answer} problem={problem} again={again}
               reading={text.settings.reading} />
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
