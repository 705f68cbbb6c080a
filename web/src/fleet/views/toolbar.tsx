// The bar on top: what is asked about, of which nodes, and of which time.
import { useEffect, useState } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { useLatest } from "../../lib/latest";
import { theme, toggleTheme } from "../../lib/theme";
import { kindRank, kindText } from "../../logic/events";
import type { Choices, Reader } from "../logic/answers";
import { aboutText, firstAbout, ofAboutText, PERIODS, type State } from "../logic/state";
import { useApp } from "./app";

export function Toolbar({ reader }: { reader: Reader }) {
  const app = useApp();
  const state = useAtom(app.state);
  const look = useAtom(theme);
  const choices = useChoices(state);
  return (
    <nav class="toolbar" aria-label="what is asked">
      <h1><span class="brand">necroscope</span> fleet</h1>
      {reader.cluster !== "*" && <span class="badge" title="your token reads this cluster">{reader.cluster}</span>}
      {choices?.clusters.includes("generated") && <span class="badge" title="made by a program; nothing in it was ever measured">generated data</span>}
      <AboutChoice state={state} choices={choices} />
      <PeriodChoice state={state} />
      <WhereInput id="where" label="nodes" placeholder="all nodes; zone=a and not image=old*" value={state.where} set={(where) => app.move({ where })} />
      <span class="space" />
      <button type="button" onClick={() => app.round.set(app.round.get() + 1)} title="ask again (r)" aria-label="ask again">↻</button>
      <button type="button" onClick={toggleTheme} title="dark or light (t)" aria-label="dark or light">{look === "dark" ? "☀" : "☾"}</button>
      <button type="button" id="help-button" onClick={() => app.isHelpOpen.set(true)} title="keys (?)" aria-label="help">?</button>
      <button type="button" id="sign-out" onClick={() => void app.source.signOut().finally(() => location.reload())} title="forget the token in this browser">sign out</button>
    </nav>
  );
}

/** Read for this time, and there for all views. */
function useChoices({ since, until }: State): Choices | null {
  const app = useApp();
  const round = useAtom(app.round);
  const { value } = useLatest([since, until, round].join(), (signal) => app.source.choices({ since, until }, signal));
  useEffect(() => {
    app.choices.set(value);
    const first = value && location.hash.length <= 1 ? firstAbout(value, kindRank) : null;
    if (first) app.state.set({ ...app.state.get(), about: first });
  }, [value]);
  return value;
}

function AboutChoice({ state, choices }: { state: State; choices: Choices | null }) {
  const app = useApp();
  const chosen = aboutText(state.about);
  const events = (choices?.events ?? []).map(({ name, nodes }) => [`event=${name}`, `${kindText(name)} (${nodes.toLocaleString("en")})`]);
  const causes = (choices?.causes ?? []).map(({ name, nodes }) => [`cause=${name}`, `${name} (${nodes.toLocaleString("en")})`]);
  const isListed = [...events, ...causes].some(([value]) => value === chosen);
  const options = (pairs: string[][]) => pairs.map(([value, text]) => <option key={value} value={value}>{text}</option>);
  return (
    <select id="about" aria-label="event or cause" title="what is counted and explained, with the number of nodes that had it (w)" value={chosen} onChange={(event) => app.move({ about: ofAboutText(event.currentTarget.value) })}>
      {!isListed && <option value={chosen}>{kindText(state.about.name)}</option>}
      <optgroup label="events (nodes)">{options(events)}</optgroup>
      <optgroup label="causes (nodes)">{options(causes)}</optgroup>
    </select>
  );
}

function PeriodChoice({ state }: { state: State }) {
  const app = useApp();
  const isListed = !state.until && PERIODS.some(([since]) => since === state.since);
  const [from, to] = [state.since, state.until].map((moment) => moment.replace("T", " ").replace(/:\d\d(\.\d+)?Z$/, ""));
  return (
    <select id="period" aria-label="time" title="the time that is looked at (+ and -)" value={isListed ? state.since : ""} onChange={(event) => app.move({ since: event.currentTarget.value, until: "" })}>
      {!isListed && <option value="">{from} – {to || "now"}</option>}
      {PERIODS.map(([since, text]) => <option key={since} value={since}>{text}</option>)}
    </select>
  );
}

interface WhereProps {
  id: string;
  label: string;
  placeholder: string;
  value: string;
  set(value: string): void;
}

/** Applied when it is left or confirmed: half an expression would be an error. */
export function WhereInput({ id, label, placeholder, value, set }: WhereProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <label class="where-input">
      {label}{" "}
      <input
        id={id} type="search" spellcheck={false} placeholder={placeholder} value={text} onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => set(event.currentTarget.value.trim())} onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      />
    </label>
  );
}
