// SPDX-License-Identifier: Apache-2.0
// Numbers in English. A number and its unit stay on one line.
export const plural = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`;

const figures = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
export const number = (value: number): string => figures.format(value);

const counts = new Intl.NumberFormat("en");
export const count = (value: number): string => counts.format(value);

export const bandwidth = (mbps: number): string =>
  mbps >= 10_000 ? `${number(mbps / 1000)}\u00a0Gbit/s` : `${number(mbps)}\u00a0Mbit/s`;

export const duration = (milliseconds: number): string => {
  if (milliseconds < 1) return `${number(milliseconds * 1000)}\u00a0µs`;
  if (milliseconds < 1000) return `${number(milliseconds)}\u00a0ms`;
  if (milliseconds < 120_000) return `${number(milliseconds / 1000)}\u00a0s`;
  return `${number(milliseconds / 60_000)}\u00a0min`;
};
