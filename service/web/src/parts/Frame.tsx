// SPDX-License-Identifier: Apache-2.0
// Around every page: where one is, whether what is shown is live, who is signed in.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useStatus } from "../live/hooks";
import type { Reporting } from "../live/hooks";
import type { Liveness } from "../live/stream";
import { hashOf } from "../model/paths";
import type { Route } from "../model/paths";
import { pageOf } from "../pages/pages";
import type { Page } from "../pages/pages";
import { text } from "../text/en";
import { Boundary } from "./Boundary";
import type { Person } from "./context";
import { chooseTheme, chosenTheme, THEMES } from "./theme";
import { When } from "./When";

export interface FrameProps {
  pages: readonly Page[];
  route: Route;
  person: Person;
  live: Reporting<{ liveness: Liveness }>;
  below?: readonly string[]; // where the pages are
  way?: ComponentChildren; // back from there
  notice?: ComponentChildren; // above each page
}

export function Frame({ pages, route, person, live, below = [], way, notice }: FrameProps) {
  const page = pageOf(pages, route);
  const title = page?.title ?? text.pages.unknown;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const place = [...below, ...route.parts].join("/");
  useEffect(() => {
    document.title = [...route.parts.slice(1), title, ...below.slice(1), text.product].join(" · ");
    // A person who follows a link by keyboard or ear goes on in the page that it leads to.
    if (!first.current) main.current?.focus();
    first.current = false;
  }, [place]);
  return (
    <>
      <header class="frame">
        <a class="skip" href={location.hash} onClick={event => {
          event.preventDefault();
          main.current?.focus();
        }}>{text.frame.skip}</a>
        <span class="product">{text.product}</span>
        {way}
        <nav aria-label={text.frame.navigation}>
          {pages.map(one => (
            <a key={one.path} href={hashOf(...below, ...(one.path === "" ? [] : [one.path]))}
               aria-current={one === page ? "page" : undefined}>{one.title}</a>
          ))}
        </nav>
        <LiveMark live={live} />
        <ThemeChoice />
        <Who person={person} />
      </header>
      <main ref={main} tabIndex={-1}>
        {notice}
        <Boundary key={route.parts[0]}>
          {page === undefined ? <Unknown route={route} /> : <page.component route={route} />}
        </Boundary>
      </main>
    </>
  );
}

function Unknown({ route }: { route: Route }) {
  return (
    <>
      <h1>{text.pages.unknown}</h1>
      <p>{text.pages.unknownDetail(hashOf(...route.parts))}</p>
    </>
  );
}

function LiveMark({ live }: { live: Reporting<{ liveness: Liveness }> }) {
  const { liveness } = useStatus(live);
  if (liveness.live) return <span class="live" role="status">{text.frame.live}</span>;
  const since = new Date(liveness.since).toISOString();
  return <span class="not-live" role="status">{text.frame.notLive} <When at={since} /></span>;
}

function ThemeChoice() {
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <select aria-label={text.frame.theme.label} value={theme} onChange={event => {
      const chosen = THEMES.find(one => one === event.currentTarget.value) ?? "auto";
      chooseTheme(chosen);
      setTheme(chosen);
    }}>
      {THEMES.map(one => <option key={one} value={one}>{text.frame.theme[one]}</option>)}
    </select>
  );
}

function Who({ person: { session, acting, signOut } }: { person: Person }) {
  if (acting?.elevated) return (
    <>
      <span class="who">{text.cockpit.elevated(acting.name)}</span>
      <button type="button" onClick={acting.giveUp}>{text.cockpit.giveUp(acting.name)}</button>
    </>
  );
  if (session.token === null) return null;
  return (
    <>
      <span class="who">{text.frame.signedIn(session.who, session.role ?? "")}</span>
      <button type="button" onClick={signOut}>{text.frame.signOut}</button>
    </>
  );
}
