// SPDX-License-Identifier: Apache-2.0
// Starts the console: in Cockpit, or for somebody who signs in to vfmgrd.
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Person } from "./parts/context";
import { forgetDrafts } from "./parts/drafts";
import { InCockpit } from "./parts/InCockpit";
import { SignedIn } from "./parts/SignedIn";
import { SignIn } from "./parts/SignIn";
import { chosenTheme, showTheme } from "./parts/theme";
import { text } from "./text/en";
import { fetchTransport } from "./transport/fetch";
import { answerOtherTabs, askOtherTabs, forget, keep, kept } from "./transport/session";
import type { Session } from "./transport/session";
import "./style.css";

type Stage =
  | { is: "asking" }
  | { is: "signed out"; isOver: boolean }
  | { is: "signed in"; session: Session };

function App({ tellSignedOut, onSignedOut }: {
  tellSignedOut: () => void; onSignedOut: (listener: () => void) => void;
}) {
  const [stage, setStage] = useState<Stage>({ is: "asking" });
  const enter = (session: Session): void => {
    keep(session);
    setStage({ is: "signed in", session });
  };
  const leave = (isOver: boolean): void => {
    forget();
    setStage({ is: "signed out", isOver });
  };
  const signedOut = (): void => {
    forgetDrafts();
    leave(false);
  };
  useEffect(() => {
    onSignedOut(signedOut);
    const session = kept();
    if (session !== null) return enter(session);
    askOtherTabs(late => { if (kept() === null) enter(late); })
      .then(found => found === null ? leave(false) : enter(found), () => leave(false));
  }, []);
  if (stage.is === "asking") return <main><p role="status">{text.signIn.asking}</p></main>;
  if (stage.is === "signed out") return <SignIn isOver={stage.isOver} onSignedIn={enter} />;
  return <OverFetch session={stage.session} onOver={() => leave(true)} onSignedOut={() => {
    tellSignedOut();
    signedOut();
  }} />;
}

function OverFetch({ session, onOver, onSignedOut }: {
  session: Session; onOver: () => void; onSignedOut: () => void;
}) {
  const transport = useMemo(() => fetchTransport(() => session.token), [session]);
  const signOut = (): void => {
    // Whether or not the daemon hears of it, this browser forgets the session.
    const end = (): void => onSignedOut();
    transport.request("DELETE", "/v1/sessions/current").then(end, end);
  };
  const person: Person = { session, acting: null, signOut };
  return <SignedIn transport={transport} person={person} onOver={onOver} />;
}

showTheme(chosenTheme());
const page = document.getElementById("app")!;
if (window.cockpit !== undefined) {
  render(<InCockpit cockpit={window.cockpit} />, page);
} else {
  const signedOut = { listener: () => undefined as void };
  const tellSignedOut = answerOtherTabs(() => signedOut.listener());
  render(
    <App tellSignedOut={tellSignedOut}
         onSignedOut={listener => { signedOut.listener = listener; }} />, page);
}
