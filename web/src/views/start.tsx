// Opens the page: the recording first, then the verdict; follows a live recording.
import { render } from "preact";
import { ranked, withIncident } from "../logic/incident";
import { tellingMode } from "../logic/core_map";
import { clock, type Clock } from "../logic/moment";
import { ServerError } from "../logic/server_source";
import type { Source } from "../logic/source";
import { followed, type State } from "../logic/state";
import { makeApp, type App } from "./app";
import { watchKeys } from "./keys";
import { Page } from "./page";

const FOLLOW_MS = 2000;
const REPORT_EVERY = 10;
const REPORT_AGAIN_MS = 1500;
const PATIENCE_MS = 1500;
const TURN_MS = 30;

export async function start(place: HTMLElement, makeSource: (at: () => Clock) => Promise<Source>): Promise<void> {
  let at: Clock = clock("0");
  try {
    const source = await makeSource(() => at);
    const recording = await source.recording();
    at = clock(recording.from ?? "0");
    const app = makeApp(source, at, recording);
    document.title = `${recording.node} · necroscope`;
    render(<Page app={app} />, place);
    watchKeys(app);
    const untouched = location.hash.length <= 1 ? app.state.get() : null;
    void firstPicture().then(() => readReport(app, untouched));
    if (recording.live) follow(app);
  } catch (error) {
    render(<Failure error={error} />, place);
  }
}

/** The core map comes before the verdict, which may take the server long. */
async function firstPicture(): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS && !document.querySelector("#core-map[data-ready=yes]"); waited += TURN_MS) {
    await new Promise((done) => setTimeout(done, TURN_MS));
  }
}

function Failure({ error }: { error: unknown }) {
  const hint = error instanceof ServerError ? error.hint : "reload the page";
  return (
    <div class="failure">
      <h1>necroscope</h1>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <p class="faint">{hint}</p>
    </div>
  );
}

/** Where nobody has looked anywhere yet, the page goes to the worst incident. Asks again until the whole recording was gone through. */
async function readReport(app: App, untouched: State | null): Promise<void> {
  try {
    const report = await app.source.report();
    const first = ranked(report.incidents)[0];
    const leads = app.state.get() === untouched;
    if (leads && first) {
      app.state.set(withIncident(app.state.get(), first, app.clock, app.span()));
      app.follows.set(false);
    }
    if (leads && !first && report.is_complete) openTelling(app);
    app.report.set(report);
    app.reportError.set(null);
    if (!report.is_complete) setTimeout(() => void readReport(app, leads && !first ? untouched : null), REPORT_AGAIN_MS);
  } catch (error) {
    app.reportError.set(error instanceof Error ? error.message : String(error));
  }
}

/** Nothing was found: the core map opens on the mode that has something to show. */
function openTelling(app: App): void {
  const map = app.coreMap.get();
  if (map) app.state.set({ ...app.state.get(), mode: tellingMode(map) });
}

/** Asks what was recorded since; while following, the view ends where the recording does. The verdict comes now and then, and at the end. */
function follow(app: App): void {
  let [turns, reported] = [0, app.recording.get().to];
  const turn = async () => {
    try {
      const recording = await app.source.recording();
      if (recording.to !== app.recording.get().to || recording.live !== app.recording.get().live) {
        const before = app.span();
        app.recording.set(recording);
        if (app.follows.get()) app.state.set(followed(app.state.get(), before, app.span()));
      }
      turns += 1;
      if (recording.to !== reported && (turns >= REPORT_EVERY || !recording.live)) {
        [turns, reported] = [0, recording.to];
        await readReport(app, null);
      }
    } catch {
      // the next turn asks again; the lanes say themselves that the server does not answer
    }
    setTimeout(turn, FOLLOW_MS);
  };
  setTimeout(turn, FOLLOW_MS);
}
