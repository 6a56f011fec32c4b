// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { text } from "../text/en";

// Copies a text, and says that it did. `about` is for those who hear the button.
export function CopyButton({ content, label, about }: {
  content: string; label?: string; about?: string;
}) {
  const [said, setSaid] = useState("");
  useEffect(() => setSaid(""), [content]);
  return (
    <span class="copy">
      <button type="button" aria-label={about} onClick={() => {
        // Pages that are not served over TLS or from the machine itself have no clipboard.
        const copied = navigator.clipboard?.writeText(content) ?? Promise.reject(new Error());
        copied.then(() => setSaid(text.copy.done), () => setSaid(text.copy.failed));
      }}>{label ?? text.copy.act}</button>
      <span role="status" class="quiet">{said}</span>
    </span>
  );
}
