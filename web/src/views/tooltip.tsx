// One tooltip for all canvases. Text only: names come from the machine and may be anything.
import { atom, useAtom } from "../lib/atom";

interface Tip {
  x: number;
  y: number;
  lines: string[];
}

const tip = atom<Tip | null>(null);
const WIDE = 520;

export function showTip(event: { clientX: number; clientY: number }, lines: string[]): void {
  tip.set({ x: event.clientX, y: event.clientY, lines });
}

export const hideTip = (): void => tip.set(null);

export function Tooltip() {
  const shown = useAtom(tip);
  if (!shown) return null;
  const left = Math.min(shown.x + 14, window.innerWidth - Math.min(WIDE, window.innerWidth / 2));
  const isLow = shown.y > window.innerHeight - 140;
  const place = isLow ? { bottom: window.innerHeight - shown.y + 12 } : { top: shown.y + 16 };
  return (
    <div class="tip" role="tooltip" style={{ left, maxWidth: WIDE, ...place }}>
      {shown.lines.map((line, number) => (
        <div key={number} class={number ? "" : "strong"}>
          {line}
        </div>
      ))}
    </div>
  );
}
