// Counters of memory, network and pressure over time: the one that moved most in the view, or the one that is chosen.
import { useMemo, useRef, useState } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useCovering } from "../lib/latest";
import { shownSeries, valueText } from "../logic/counters";
import { PALETTES } from "../draw/palette";
import { useApp } from "./app";
import { Lane, TimeSurface } from "./lane";
import { highest, LinePlot, nearest, type Lines } from "./line_plot";

const HEIGHT = 64;
const REST_MS = 180;
/** The core map is asked for first: it is what is looked at first. */
const FIRST_MS = 500;
const STYLES = [{ stroke: (look: "dark" | "light") => PALETTES[look].ranks[0]! }];

export function CountersLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const recording = useAtom(app.recording);
  const kept = useRef(false);
  const [chosen, choose] = useState<string | null>(null);
  const end = recording.live ? (recording.to ?? "") : "";
  const answer = useCovering(state.view, end, (view, signal) => app.source.counters(view, signal), (found) => !found.left_out.length, kept.current ? app.rest(REST_MS) : FIRST_MS);
  kept.current ||= answer.value !== null;
  const series = answer.value?.series ?? [];
  const shown = shownSeries(series, chosen);
  const lines = useMemo(() => (shown ? ([shown.time.map(app.clock.ofDigits), shown.value] as Lines) : null), [shown]);
  const tip = (moment: number) => {
    const value = lines && shown ? lines[1]![nearest(lines, moment)] : null;
    return shown && value !== null && value !== undefined ? [`${shown.name}: ${valueText(value, shown.unit)}`, shown.meaning] : null;
  };
  const tools = series.length > 0 && (
    <select aria-label="counter" value={shown?.name} onChange={(event) => choose(event.currentTarget.value)}>
      {series.map(({ name }) => <option key={name} value={name}>{name}</option>)}
    </select>
  );
  const high = lines && shown ? (
    <>
      <span style={{ top: 8 }}>{valueText(highest(lines), shown.unit)}</span>
      <span style={{ top: HEIGHT - 8 }}>0</span>
    </>
  ) : null;
  const calm = answer.value ? (series.length ? `${answer.value.calm} more moved less` : "nothing was counted here, or nothing moved") : "";
  const note = [shown?.meaning ?? "", calm, ...(answer.value?.left_out ?? [])].filter(Boolean).join(" · ");
  return (
    <Lane id="counters" title="Counters" note={answer.error?.message ?? note} isAsking={answer.isAsking} tools={tools}>
      <TimeSurface
        height={HEIGHT} label="a counter over time" tables={["memory", "network", "pressure"]} tip={tip} gutter={high}
        draw={(width) => <LinePlot lines={lines} styles={STYLES} view={state.view} width={width} height={HEIGHT} />}
      />
    </Lane>
  );
}
