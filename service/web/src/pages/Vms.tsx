// SPDX-License-Identifier: Apache-2.0
import { text } from "../text/en";

export function Vms() {
  return <h1>{text.pages.vms}</h1>;
}
