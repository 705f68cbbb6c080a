// The help on `?`: how to read the page and which keys there are.
import { useEffect, useRef } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { useApp } from "./app";
import { KEYS } from "./keys";

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
      <ul>
        <li>The bars count what you ask about over time, by a label. Drag over them to look at less time; click a name under them to look at those nodes only.</li>
        <li><b>Why</b> compares nodes that had it with nodes that had not. A node is one square: full ones were affected. A place is never a cause; if it seems one, the nodes that say otherwise are named.</li>
        <li><b>Incidents</b> are the verdicts of the nodes; a click on one with evidence opens it in the time machine.</li>
        <li><b>Compare</b> and <b>Flame graph</b> take two groups of nodes, by default the affected ones and the others.</li>
        <li>Nodes are chosen by expressions: <code>zone=a and not image=old*</code>, <code>unit_file:agent.service=enabled</code>, <code>event=nic_reset</code>, <code>node=gpu-17</code>.</li>
        <li>The address holds all that is chosen; back and forward work.</li>
      </ul>
      <table class="keys">
        <tbody>
          {KEYS.map(({ keys, help }) => (
            <tr key={help}>
              <td>
                {keys.map((key) => (
                  <kbd key={key}>{key === "Escape" ? "Esc" : key}</kbd>
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
