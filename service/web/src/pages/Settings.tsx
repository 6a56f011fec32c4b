// SPDX-License-Identifier: Apache-2.0
// What this host is configured to have, and who may use its API. #/settings/SECTION/NAME.
import type { Route } from "../model/paths";
import { text } from "../text/en";
import { hashHere } from "./links";
import { sections } from "./settings/sections";

export function Settings({ route }: { route: Route }) {
  const [, path] = route.parts;
  const section = sections.find(one => one.path === path);
  return (
    <>
      <h1>{text.pages.settings}</h1>
      {path !== undefined && (
        <nav class="sections" aria-label={text.settings.sections}>
          {sections.map(one => (
            <a key={one.path} href={hashHere("settings", one.path)}
               aria-current={one === section ? "page" : undefined}>{one.words.title}</a>
          ))}
        </nav>
      )}
      {path === undefined && <Overview />}
      {path !== undefined && section === undefined && (
        <p>{text.pages.unknownDetail(hashHere(...route.parts))}</p>
      )}
      {section !== undefined && <section.component key={section.path} route={route} />}
    </>
  );
}

function Overview() {
  return (
    <dl class="overview">
      {sections.map(one => (
        <div key={one.path} class="panel">
          <dt><a href={hashHere("settings", one.path)}>{one.words.title}</a></dt>
          <dd>{one.words.about}</dd>
        </div>
      ))}
    </dl>
  );
}
