// What can be asked of the flame graph: search, filter, group, turn, compare, look deeper.
import { useEffect, useState } from "preact/hooks";
import { useAtom } from "../lib/atom";
import type { Flame } from "../logic/flame";
import { address } from "../logic/server_source";
import { baselineBefore, GROUPS, type Group } from "../logic/state";
import { useApp, type App } from "./app";

const GROUP_TEXT: Record<Group, string> = { "": "nothing", process: "process", name: "name", core: "core", cgroup: "cgroup" };

export function FlameTools({ flame }: { flame: Flame | null }) {
  const app = useApp();
  const state = useAtom(app.state);
  return (
    <>
      <input
        id="search" type="search" placeholder="search  /" aria-label="search frames; /expression/ for a regular one" value={state.search}
        onInput={(event) => app.move({ ...state, search: event.currentTarget.value })}
      />
      <Filter id="comm" name="process" value={state.comm} set={(comm) => app.move({ ...app.state.get(), comm })} />
      <Filter id="cgroup" name="cgroup" value={state.cgroup} set={(cgroup) => app.move({ ...app.state.get(), cgroup })} />
      <label>
        by{" "}
        <select id="group" value={state.group} onChange={(event) => app.move({ ...state, group: event.currentTarget.value as Group })}>
          {GROUPS.map((group) => (
            <option key={group} value={group}>
              {GROUP_TEXT[group]}
            </option>
          ))}
        </select>
      </label>
      <button type="button" id="turned" aria-pressed={state.isTurned} onClick={() => app.move({ ...state, isTurned: !state.isTurned })} title="from the innermost frame to its callers (i)">
        callers
      </button>
      <button type="button" id="compare" aria-pressed={state.baseline !== null} disabled={!state.window} onClick={() => toggleBaseline(app)} title="against the stretch before (b); Shift and drag over a lane chooses another">
        {state.baseline ? "stop comparing" : "compare"}
      </button>
      {!app.source.isEmbedded && (
        <button type="button" id="deep" disabled={!state.window || !flame?.samples} onClick={() => openSpeedscope(app)} title="every sample of the window in speedscope (d)">
          speedscope ↗
        </button>
      )}
    </>
  );
}

/** Applied when it is left or confirmed: half a name would ask the server for nothing. */
function Filter({ id, name, value, set }: { id: string; name: string; value: string; set: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      id={id} class="filter" type="search" placeholder={name} aria-label={`only this ${name}`} value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => set(event.currentTarget.value.trim())}
    />
  );
}

export function toggleBaseline(app: App): void {
  const state = app.state.get();
  if (!state.window) return;
  app.move({ ...state, baseline: state.baseline ? null : baselineBefore(state.window, app.span()) });
}

export function openSpeedscope(app: App): void {
  const { window: wanted, cpu, comm, cgroup } = app.state.get();
  if (!wanted || app.source.isEmbedded) return;
  const words = { from_ns: app.clock.digits(wanted[0]), to_ns: app.clock.digits(wanted[1]), cpu, comm, cgroup };
  const profile = new URL(address("api/speedscope", words), location.href);
  const target = new URL("speedscope/index.html", location.href);
  target.hash = `profileURL=${encodeURIComponent(profile.href)}&title=${encodeURIComponent("necroscope")}`;
  window.open(target.href, "_blank", "noopener");
}
