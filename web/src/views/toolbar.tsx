// The bar on top: what this recording is, what is looked at, and what can be done with it.
import { useEffect, useState } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { length, middle } from "../lib/range";
import { theme, toggleTheme } from "../lib/theme";
import { dayText, durationText } from "../logic/moment";
import { address } from "../logic/server_source";
import { toHash, zoomed } from "../logic/state";
import { useApp, type App } from "./app";

export function Toolbar() {
  const app = useApp();
  const recording = useAtom(app.recording);
  const state = useAtom(app.state);
  const look = useAtom(theme);
  const by = (factor: number) => () => app.move(zoomed(state, factor, middle(state.view), app.span()));
  return (
    <nav class="toolbar" aria-label="tools">
      <h1>
        <span class="brand">necroscope</span> {recording.node || "unknown node"}
      </h1>
      <span class="faint">
        {dayText(app.clock.date(state.view[0]))} · {recording.cpus.length} cores · {durationText(length(app.span()))} recorded
      </span>
      {recording.generated && <span class="badge" title="made by a program; nothing in it was ever measured">generated data</span>}
      {app.source.isEmbedded && <span class="badge" title="a part of a recording, kept in this file">exported page</span>}
      {recording.live && <LiveButton />}
      {recording.lost_samples > 0 && <span class="badge warn">{recording.lost_samples.toLocaleString("en")} samples lost</span>}
      <span class="space" />
      <span class="faint">view: {durationText(length(state.view))}</span>
      <button type="button" onClick={by(0.5)} title="zoom in (+)" aria-label="zoom in">+</button>
      <button type="button" onClick={by(2)} title="zoom out (-)" aria-label="zoom out">−</button>
      <button type="button" disabled={!state.window} onClick={() => state.window && app.move({ ...state, view: state.window })} title="zoom to the window (z)">window</button>
      <button type="button" id="whole" onClick={() => app.move({ ...state, view: app.span() })} title="the whole recording (0)">all</button>
      <CopyLink />
      {!app.source.isEmbedded && <button type="button" id="export" onClick={() => exportPage(app)} title="one HTML file of this view, for the review (e)">export</button>}
      <button type="button" onClick={toggleTheme} title="dark or light (t)" aria-label="dark or light">{look === "dark" ? "☀" : "☾"}</button>
      <button type="button" id="help-button" onClick={() => app.isHelpOpen.set(true)} title="keys (?)" aria-label="help">?</button>
    </nav>
  );
}

function LiveButton() {
  const app = useApp();
  const follows = useAtom(app.follows);
  return (
    <button type="button" class={`badge live ${follows ? "on" : ""}`} aria-pressed={follows} onClick={() => app.follows.set(!follows)} title="follow the recording as it grows (f)">
      ● live{follows ? ", following" : ""}
    </button>
  );
}

function CopyLink() {
  const app = useApp();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  if (app.source.isEmbedded) return null;
  // Not the address bar's: while a live recording is followed it says nothing of what is on the screen.
  const link = () => new URL(toHash(app.state.get(), app.clock), location.href).href;
  const copy = () => navigator.clipboard?.writeText(link()).then(() => setCopied(true), () => undefined);
  return (
    <button type="button" id="copy" onClick={copy} title="the address holds all that is chosen: a colleague sees the same">
      {isCopied ? "copied" : "copy link"}
    </button>
  );
}

/** The view goes into the file: what is on the screen, with everything that can be asked of it. */
export function exportPage(app: App): void {
  if (app.source.isEmbedded) return;
  const { view, window: chosen } = app.state.get();
  const link = document.createElement("a");
  const window = chosen && { window_from_ns: app.clock.digits(chosen[0]), window_to_ns: app.clock.digits(chosen[1]) };
  const state = toHash(app.state.get(), app.clock).slice(1);
  link.href = address("api/export", { from_ns: app.clock.digits(view[0]), to_ns: app.clock.digits(view[1]), ...window, state });
  link.download = "";
  link.click();
}
