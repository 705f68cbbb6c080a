// The colours of pictures, for dark and light. Heat goes from the page's ground to a glaring end, so that rare and strong is seen first.
import { css, packedColour, ramp, type Colour } from "../lib/colour";
import type { Theme } from "../lib/theme";

interface Palette {
  heat: Uint32Array;
  notRead: number;
  text: string;
  faint: string;
  edge: string;
  ground: string;
  frames: readonly string[];
  frameText: string;
  match: string;
  matchText: string;
  dimmed: string;
  grew: Colour;
  shrank: Colour;
  neutral: Colour;
  ranks: readonly string[];
  /** Wanted a core, slept in the kernel, a lock of its own. */
  waits: readonly string[];
}

const DARK_HEAT: Colour[] = [[24, 28, 36], [40, 56, 96], [92, 60, 140], [190, 60, 110], [245, 120, 50], [255, 225, 120]];
const LIGHT_HEAT: Colour[] = [[243, 245, 248], [203, 220, 240], [247, 214, 140], [244, 150, 70], [214, 50, 40], [110, 0, 30]];

export const PALETTES: Record<Theme, Palette> = {
  dark: {
    heat: ramp(DARK_HEAT, 251),
    notRead: packedColour([60, 66, 78], 120),
    text: "#e6e8ec",
    faint: "#8d95a3",
    edge: "#0f1218",
    ground: "#12151c",
    frames: ["#c8553d", "#3f7d6b", "#a88a2c", "#56607a", "#5a5f69"],
    frameText: "#ffffff",
    match: "#d53fd6",
    matchText: "#ffffff",
    dimmed: "#2c313c",
    grew: [226, 60, 50],
    shrank: [60, 120, 235],
    neutral: [84, 90, 102],
    ranks: ["#ff5a4f", "#ffa033", "#8fb6ff", "#8d95a3"],
    waits: ["#ff9d4d", "#6ea8ff", "#c792ea"],
  },
  light: {
    heat: ramp(LIGHT_HEAT, 251),
    notRead: packedColour([190, 195, 205], 120),
    text: "#1b1f27",
    faint: "#626b79",
    edge: "#ffffff",
    ground: "#ffffff",
    frames: ["#f0907a", "#8fccb9", "#e8cf7a", "#c3cbdd", "#d3d6db"],
    frameText: "#14171d",
    match: "#d53fd6",
    matchText: "#ffffff",
    dimmed: "#eceef2",
    grew: [224, 70, 60],
    shrank: [70, 130, 235],
    neutral: [214, 217, 223],
    ranks: ["#c81e1e", "#b45309", "#1d4ed8", "#626b79"],
    waits: ["#c2570c", "#2b62c9", "#7c3aad"],
  },
};

export const colourText = css;
