// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../transport/types";

// What several requests failed of is said once.
export function distinct(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map(one => [`${one.code} ${one.detail}`, one])).values()];
}
