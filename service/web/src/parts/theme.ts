// SPDX-License-Identifier: Apache-2.0
// The system's colours, or those that a person chose for this browser.
export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = typeof THEMES[number];
const KEY = "vfmgr-theme";

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find(theme => theme === kept) ?? "auto";
}

export function showTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  showTheme(theme);
}
