// SPDX-License-Identifier: Apache-2.0
// Starts the console: who is signed in, over which transport, and the pages.
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { follow } from "./live/stream";
import { Store } from "./live/store";
import { ConsoleContext } from "./parts/context";
import type { Console } from "./parts/context";
import { forgetDrafts } from "./parts/drafts";
import { Frame } from "./parts/Frame";
import { SignIn } from "./parts/SignIn";
import { chosenTheme, showTheme } from "./parts/theme";
import { text } from "./text/en";
import { apiOver } from "./transport/api";
import { cockpitTransport } from "./transport/cockpit";
import { fetchTransport } from "./transport/fetch";
import { answerOtherTabs, askOtherTabs, forget, itself, keep, kept } from "./transport/session";
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
    if (window.cockpit !== undefined) return enter(itself);
    const session = kept();
    if (session !== null) return enter(session);
    askOtherTabs(late => { if (kept() === null) enter(late); })
      .then(found => found === null ? leave(false) : enter(found), () => leave(false));
  }, []);
  if (stage.is === "asking") return <main><p role="status">{text.signIn.asking}</p></main>;
  if (stage.is === "signed out") return <SignIn isOver={stage.isOver} onSignedIn={enter} />;
  return <SignedIn session={stage.session} onOver={() => leave(true)} onSignedOut={() => {
    tellSignedOut();
    signedOut();
  }} />;
}

function SignedIn({ session, onOver, onSignedOut }: {
  session: Session; onOver: () => void; onSignedOut: () => void;
}) {
  const { transport, here } = useMemo(() => {
    const transport = window.cockpit === undefined ? fetchTransport(() => session.token)
      : cockpitTransport(window.cockpit);
    const api = apiOver(transport, onOver);
    const signOut = (): void => {
      // Whether or not the daemon hears of it, this browser forgets the session.
      const end = (): void => onSignedOut();
      transport.request("DELETE", "/v1/sessions/current").then(end, end);
    };
    const console: Console = { api, store: new Store(api), session, signOut };
    return { transport, here: console };
  }, [session]);
  useEffect(() => follow(transport, session.who, {
    onFrame: frame => here.store.onFrame(frame),
    onLiveness: liveness => here.store.onLiveness(liveness),
    onRefused: status => { if (status === 401) onOver(); },
  }), [here]);
  return <ConsoleContext.Provider value={here}><Frame /></ConsoleContext.Provider>;
}

showTheme(chosenTheme());
const signedOut = { listener: () => undefined as void };
const tellSignedOut = answerOtherTabs(() => signedOut.listener());
render(
  <App tellSignedOut={tellSignedOut}
       onSignedOut={listener => { signedOut.listener = listener; }} />,
  document.getElementById("app")!);
