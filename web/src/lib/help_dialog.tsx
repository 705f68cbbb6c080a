// The frame of the help on `?`: opens and closes with its atom, and lists the keys below what the page says of itself.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Atom, useAtom } from "./atom";

const SIGNS: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", "Shift+ArrowLeft": "Shift ←", "Shift+ArrowRight": "Shift →", Escape: "Esc" };

export function HelpDialog({ isOpen, keys, children }: { isOpen: Atom<boolean>; keys: readonly { keys: readonly string[]; help: string }[]; children: ComponentChildren }) {
  const isShown = useAtom(isOpen);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isShown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isShown]);
  return (
    <dialog ref={dialog} id="help" onClose={() => isOpen.set(false)} aria-label="help">
      <button type="button" onClick={() => isOpen.set(false)}>
        close
      </button>
      <h2>How to read this page</h2>
      {children}
      <table class="keys">
        <tbody>
          {keys.map((row) => (
            <tr key={row.help}>
              <td>
                {row.keys.map((key) => (
                  <kbd key={key}>{SIGNS[key] ?? key}</kbd>
                ))}
              </td>
              <td>{row.help}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </dialog>
  );
}
