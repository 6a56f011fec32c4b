// SPDX-License-Identifier: Apache-2.0
// #/events is the timeline; #/events/operation/ID one operation, #/events/certificate/ATTACHMENT
// the certificate of an attachment that ended.
import type { Route } from "../model/paths";
import { CertificatePage } from "./events/CertificatePage";
import { OperationPage } from "./events/OperationPage";
import { Timeline } from "./events/Timeline";

export function Events({ route }: { route: Route }) {
  const [, kind, id] = route.parts;
  if (kind === "operation" && id !== undefined) return <OperationPage key={id} id={id} />;
  if (kind === "certificate" && id !== undefined)
    return <CertificatePage key={id} attachment={id} />;
  // Another filter is another timeline.
  return <Timeline key={[...route.query].join()} route={route} />;
}
