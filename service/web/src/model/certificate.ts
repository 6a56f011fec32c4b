// SPDX-License-Identifier: Apache-2.0
// Every line of a certificate. Null is what a driver does not report, undefined what the attachment
// did not set: the page says so and leaves nothing out.
import type { Certificate, VfSpec } from "../transport/types";

export type Line = readonly [name: string, ...values: (string | null | undefined)[]];

export interface CertificateLines {
  settings: Line[]; // name, before the detach, now
  addresses: Line[]; // name, while attached, now
  counters: Line[] | null; // name, before the reset
}

// A setting that the attachment did not change has only its present value.
export function linesOf(certificate: Certificate): CertificateLines {
  const { restored, settings, rotated, counters } = certificate;
  const names = [...new Set([...Object.keys(settings), ...Object.keys(restored.was),
    ...Object.keys(restored.is)])] as (keyof VfSpec)[];
  return {
    settings: names.map(name => {
      const attached = name in restored.was || name in restored.is;
      return [name, attached ? settingText(restored.was[name]) : undefined,
        settingText(restored.is[name] ?? settings[name])];
    }),
    addresses: Object.entries(rotated).flatMap(([name, address]) =>
      address === null ? [] : [[name, address.was, address.is] as const]),
    counters: counters === null ? null : Object.entries(counters)
      .map(([name, value]) => [name, value === null ? null : String(value)]),
  };
}

function settingText(value: VfSpec[keyof VfSpec]): string | null {
  if (value === undefined) return null;
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value !== "object") return String(value);
  return `${value.id}, priority ${value.qos ?? 0}, ${value.proto ?? "802.1q"}`;
}
