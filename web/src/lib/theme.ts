// Dark or light: what the system says, unless the user chose. Canvases ask for their colours here.
import { atom } from "./atom";

export type Theme = "dark" | "light";
const KEY = "theme";
const preference = window.matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : null;
  } catch {
    return null; // a page opened from a file may have no storage
  }
}

const wanted = (): Theme => stored() ?? (preference.matches ? "dark" : "light");

export const theme = atom<Theme>(wanted());

function show(): void {
  document.documentElement.dataset["theme"] = theme.get();
}

export function toggleTheme(): void {
  const next: Theme = theme.get() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // then it lasts as long as the page
  }
  theme.set(next);
}

export function watchTheme(): void {
  preference.addEventListener("change", () => theme.set(wanted()));
  theme.watch(show);
  show();
}
