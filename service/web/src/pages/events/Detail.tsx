// SPDX-License-Identifier: Apache-2.0
import { piecesOf } from "../../model/events";

// Files are set apart, with the line that a person opens them at.
export function Detail({ detail }: { detail: string }) {
  return (
    <span class="detail">
      {piecesOf(detail).map(({ text: piece, place }, at) =>
        place ? <code key={at}>{piece}</code> : piece)}
    </span>
  );
}
