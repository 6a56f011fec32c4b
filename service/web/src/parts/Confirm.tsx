// SPDX-License-Identifier: Apache-2.0
import { useId, useState } from "preact/hooks";
import { text } from "../text/en";

// A destructive act: the button works once the name of what it hits is typed.
export function Confirm({ name, act, onConfirmed }: {
  name: string; act: string; onConfirmed: () => void;
}) {
  const [typed, setTyped] = useState("");
  const id = useId();
  return (
    <form class="confirm" onSubmit={event => {
      event.preventDefault();
      if (typed === name) onConfirmed();
    }}>
      <label for={id}>{text.confirm.type(name)}</label>
      <input id={id} value={typed} autocomplete="off" spellcheck={false}
             onInput={event => setTyped(event.currentTarget.value)} />
      <button type="submit" class="danger" disabled={typed !== name}>{act}</button>
    </form>
  );
}
