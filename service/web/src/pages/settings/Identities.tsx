// SPDX-License-Identifier: Apache-2.0
import { useAnswer } from "../../live/hooks";
import { useConsole } from "../../parts/context";
import { ProblemBox } from "../../parts/ProblemBox";
import { text } from "../../text/en";
import { DocumentEditor } from "./DocumentEditor";

const words = text.settings.identities;

export function Identities() {
  const { api, store } = useConsole();
  const { answer, problem, again } = useAnswer(store, () => api.getRevision("/v1/identities"), [],
    event => event.kind === "identities_changed");
  return (
    <>
      <h2>{words.title}</h2>
      <p class="quiet">{words.about}</p>
      {answer === null && problem === null && <p role="status">{text.settings.reading}</p>}
      {problem && <ProblemBox problem={problem} again={again} />}
      {answer && (
        <DocumentEditor name="identities" host={answer} act={words.act} confirm={words.apply}
                        target={{ path: "/v1/identities" }} again={again} />
      )}
    </>
  );
}
