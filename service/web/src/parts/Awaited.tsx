// SPDX-License-Identifier: Apache-2.0
// Stands above what an answer shows: says that it is being read, or why it could not be.
import type { Problem } from "../transport/types";
import { ProblemBox } from "./ProblemBox";

export function Awaited({ answer, problem, again, reading }: {
  answer: unknown; problem: Problem | null; again: () => void; reading: string;
}) {
  return (
    <>
      {answer === null && problem === null && <p role="status">{reading}</p>}
      {problem && <ProblemBox problem={problem} again={again} />}
    </>
  );
}
