// The help on `?`: what the lanes are and which keys there are.
import { useEffect, useRef } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useApp } from "./app";
import { KEYS } from "./keys";

const SIGNS: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", "Shift+ArrowLeft": "Shift ←", "Shift+ArrowRight": "Shift →", Escape: "Esc" };

export function Help() {
  const app = useApp();
  const isOpen = useAtom(app.isHelpOpen);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} id="help" onClose={() => app.isHelpOpen.set(false)} aria-label="help">
      <button type="button" onClick={() => app.isHelpOpen.set(false)}>
        close
      </button>
      <h2>How to read this page</h2>
      <p>
        All lanes share one time axis. The verdict on the left says what was found; each line of its evidence moves the page to where it can be seen.
      </p>
      <ul>
        <li>Drag over a lane to choose a <b>window</b>: the flame graph, the minute's heat map and the tasks are of that window.</li>
        <li>Click into the core map to look at one core at one moment. Shift and drag chooses a <b>baseline</b> to compare with.</li>
        <li>Ctrl and wheel zooms, Shift and wheel moves. Double click zooms to the window.</li>
        <li>Hatched is what was not recorded. The address holds all that is chosen; back and forward work.</li>
      </ul>
      <table class="keys">
        <tbody>
          {KEYS.map(({ keys, help }) => (
            <tr key={help}>
              <td>
                {keys.map((key) => (
                  <kbd key={key}>{SIGNS[key] ?? key}</kbd>
                ))}
              </td>
              <td>{help}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </dialog>
  );
}
