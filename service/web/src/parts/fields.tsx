// SPDX-License-Identifier: Apache-2.0
// Fields of forms, each with its label.
import { useId } from "preact/hooks";

export function Field({ label, value, hint, onInput }: {
  label: string; value: string; hint?: string; onInput: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} value={value} placeholder={hint} autocomplete="off" spellcheck={false}
             onInput={event => onInput(event.currentTarget.value)} />
    </div>
  );
}

export function Choice<T extends string>({ label, value, options, onChange }: {
  label: string; value: T; options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={event => {
        const chosen = options.find(([one]) => one === event.currentTarget.value);
        if (chosen !== undefined) onChange(chosen[0]);
      }}>
        {options.map(([one, words]) => <option key={one} value={one}>{words}</option>)}
      </select>
    </div>
  );
}
