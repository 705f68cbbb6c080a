// Goes from wait to wait, by mouse or by key.
import { byLength, waitOf, withWait, type PlacedWait } from "../logic/waits";
import { showLane, type App } from "./app";

/** Shows a wait on the whole page: the core map frames its core, the flame graph is of who ran there meanwhile. */
export function goToWait(app: App, wait: PlacedWait): void {
  app.follows.set(false);
  app.move(withWait(app.state.get(), wait, app.clock, app.span()));
}

/** Through the waits of the view by their length; the first step is to the longest. */
export function stepWait(app: App, step: 1 | -1): void {
  const answer = app.waits.get();
  if (!answer?.waits.length) return;
  const waits = byLength(answer, app.clock);
  const now = waitOf(answer, app.state.get().wait, app.clock);
  const place = now ? waits.findIndex(({ row }) => row === now.row) + step : 0;
  const next = waits[place];
  if (!next) return;
  goToWait(app, next);
  showLane(app, "waits");
}
