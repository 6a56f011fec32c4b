// SPDX-License-Identifier: Apache-2.0
import { useAnswer } from "../../live/hooks";
import { Awaited } from "../../parts/Awaited";
import { useConsole } from "../../parts/context";
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
      <Awaited answer={answer} problem={problem} again={again}
               reading={text.settings.reading} />
      {answer && (
        <DocumentEditor name="identities" host={answer} act={words.act} confirm={words.apply}
                        target={{ path: "/v1/identities" }} again={again} />
      )}
    </>
  );
}
