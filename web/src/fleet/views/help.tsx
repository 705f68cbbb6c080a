// The help on `?`: how to read the page and which keys there are.
import { HelpDialog } from "../../lib/help_dialog";
import { useApp } from "./app";
import { KEYS } from "./keys";

export function Help() {
  return (
    <HelpDialog isOpen={useApp().isHelpOpen} keys={KEYS}>
      <ul>
        <li>The bars count what you ask about over time, by a label. Drag over them to look at less time; click a name under them to look at those nodes only.</li>
        <li><b>Why</b> compares nodes that had it with nodes that had not. A node is one square: full ones were affected. A place is never a cause; if it seems one, the nodes that say otherwise are named.</li>
        <li><b>Incidents</b> are the verdicts of the nodes; a click on one with evidence opens it in the time machine.</li>
        <li><b>Jobs</b> are pieces of work over several nodes; a click on one tells its story: who stopped first, on which core, because of what.</li>
        <li><b>Compare</b> and <b>Flame graph</b> take two groups of nodes, by default the affected ones and the others.</li>
        <li>Nodes are chosen by expressions: <code>zone=a and not image=old*</code>, <code>unit_file:agent.service=enabled</code>, <code>event=nic_reset</code>, <code>node=gpu-17</code>.</li>
        <li>The address holds all that is chosen; back and forward work.</li>
      </ul>
    </HelpDialog>
  );
}
