// SPDX-License-Identifier: Apache-2.0
import { text } from "../text/en";

export function Host() {
  return <h1>{text.pages.host}</h1>;
}
