// SPDX-License-Identifier: Apache-2.0
// A token's secret, which only this page has, and only until it is left: it is never stored.
import { useEffect } from "preact/hooks";
import { CopyButton } from "../../parts/CopyButton";
import { text } from "../../text/en";
import type { NewToken } from "../../transport/types";

const words = text.settings.tokens;

export function Secret({ token, onHide }: { token: NewToken; onHide: () => void }) {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, []);
  return (
    <section class="panel secret" role="status" aria-label={words.secret(token.id)}>
      <h3>{words.secret(token.id)}</h3>
      <p class="remark">{words.once}</p>
      <div class="command">
        <code>{token.token}</code>
        <CopyButton content={token.token} />
      </div>
      <button type="button" onClick={onHide}>{words.hide}</button>
    </section>
  );
}
