// SPDX-License-Identifier: Apache-2.0
import { subjectOf } from "../../model/spans";
import { text } from "../../text/en";
import type { Operation } from "../../transport/types";
import { hrefOfAttachmentRuns } from "../links";

// What an operation is about: its attachments, or the path that it has.
export function OperationSubject({ operation }: { operation: Operation }) {
  const [kind, name] = subjectOf(operation);
  const ids = operation.attachments.length > 0 ? operation.attachments
    : kind === "attachments" && name !== undefined ? [name] : [];
  if (ids.length === 0) return <code>{operation.subject}</code>;
  return (
    <span class="subjects">
      {ids.map(id => <a key={id} href={hrefOfAttachmentRuns(id)}>{text.events.attachment(id)}</a>)}
    </span>
  );
}
