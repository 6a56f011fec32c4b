// SPDX-License-Identifier: Apache-2.0
// Below a refusal in Cockpit: the button that has the person act as root from then on.
import { useContext, useState } from "preact/hooks";
import { text } from "../text/en";
import type { Problem } from "../transport/types";
import { ConsoleContext } from "./context";

export function Elevate() {
  const acting = useContext(ConsoleContext)?.acting;
  const [waiting, setWaiting] = useState(false);
  const [refusal, setRefusal] = useState<Problem | null>(null);
  if (acting == null || acting.elevated) return null;
  const elevate = (): void => {
    setWaiting(true);
    setRefusal(null);
    void acting.elevate().then(problem => {
      setWaiting(false);
      setRefusal(problem);
    });
  };
  return (
    <>
      <p>{text.cockpit.elevateAbout(acting.name)}</p>
      <p>
        <button type="button" disabled={waiting} onClick={elevate}>{text.cockpit.elevate}</button>
      </p>
      {waiting && <p role="status">{text.cockpit.elevating}</p>}
      {refusal && <p role="status" class="remark">{refusal.detail} {refusal.remedy}</p>}
    </>
  );
}
