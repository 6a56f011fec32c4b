// SPDX-License-Identifier: Apache-2.0
import { useId, useState } from "preact/hooks";
import { text } from "../text/en";
import { problemIn } from "../transport/api";
import { fetchTransport } from "../transport/fetch";
import { signIn } from "../transport/session";
import type { Session } from "../transport/session";
import type { Problem } from "../transport/types";
import { ProblemBox } from "./ProblemBox";

export function SignIn({ isOver, onSignedIn }: {
  isOver: boolean; onSignedIn: (session: Session) => void;
}) {
  const [secret, setSecret] = useState("");
  const [waiting, setWaiting] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const id = useId();
  const help = useId();
  const begin = (token: string | null): void => {
    setWaiting(true);
    setProblem(null);
    signIn(fetchTransport, token).then(
      outcome => {
        setWaiting(false);
        if ("problem" in outcome) return setProblem(outcome.problem);
        setSecret("");
        onSignedIn(outcome.session);
      },
      (error: unknown) => {
        setWaiting(false);
        setProblem(problemIn(error));
      });
  };
  return (
    <main class="sign-in">
      <h1>{text.signIn.title}</h1>
      {isOver && <p role="status">{text.signIn.over}</p>}
      <form onSubmit={event => {
        event.preventDefault();
        begin(secret.trim());
      }}>
        <label for={id}>{text.signIn.token}</label>
        <input id={id} type="password" autocomplete="off" spellcheck={false} value={secret}
               aria-describedby={help} required autofocus
               onInput={event => setSecret(event.currentTarget.value)} />
        <p id={help} class="quiet">{text.signIn.tokenHelp}</p>
        <button type="submit" disabled={waiting}>{text.signIn.withToken}</button>
      </form>
      <button type="button" disabled={waiting} onClick={() => begin(null)}>
        {text.signIn.withCertificate}
      </button>
      <p class="quiet">{text.signIn.certificateHelp}</p>
      {waiting && <p role="status">{text.signIn.waiting}</p>}
      {problem && <ProblemBox problem={problem} />}
    </main>
  );
}
