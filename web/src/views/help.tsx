// The help on `?`: what the lanes are and which keys there are.
import { HelpDialog } from "../lib/help_dialog";
import { useApp } from "./app";
import { KEYS } from "./keys";

export function Help() {
  return (
    <HelpDialog isOpen={useApp().isHelpOpen} keys={KEYS}>
      <p>
        All lanes share one time axis. The verdict on the left says what was found; each line of its evidence moves the page to where it can be seen.
      </p>
      <ul>
        <li>Drag over a lane to choose a <b>window</b>: the flame graph, the minute's heat map and the tasks are of that window.</li>
        <li>Click into the core map to look at one core at one moment. Shift and drag chooses a <b>baseline</b> to compare with.</li>
        <li>Ctrl and wheel zooms, Shift and wheel moves. Double click zooms to the window.</li>
        <li>Hatched is what was not recorded. The address holds all that is chosen; back and forward work.</li>
      </ul>
    </HelpDialog>
  );
}
