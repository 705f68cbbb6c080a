// Events or incidents over time, stacked by a label. Drag: less time. A click on a name: those nodes only.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { startGesture } from "../../lib/drag";
import { clamp, scale, type Range } from "../../lib/range";
import { useWidth } from "../../lib/size";
import { theme } from "../../lib/theme";
import { kindText } from "../../logic/events";
import { dayText, durationText, timeText } from "../../logic/moment";
import { hideTip, showTip } from "../../views/tooltip";
import { BARS_PX, drawBars, STACK_COLOURS } from "../draw/bars";
import type { TimelineAnswer } from "../logic/answers";
import { equals, toggledWhere } from "../logic/state";
import { stacks, type Stack } from "../logic/timeline";
import { useApp } from "./app";
import { Failed } from "./asked";
import { useAnswer } from "./use_answer";

export function Timeline() {
  const app = useApp();
  const { by, about } = useAtom(app.state);
  const answer = useAnswer("timeline", (state, signal) => app.source.timeline(state, signal), by);
  const shown = useMemo(() => stacks(answer.value?.series ?? []), [answer.value]);
  const total = shown.reduce((sum, stack) => sum + stack.total, 0);
  const name = about.what === "event" ? kindText(about.name) : about.name;
  return (
    <section class="timeline" id="timeline" aria-label={`${name} over time`}>
      <header>
        <h2>{total.toLocaleString("en")} × {name}</h2>
        {answer.isAsking && <span class="spinner" role="status" aria-label="loading" />}
        <ByChoice by={by} />
        <Legend shown={shown} by={by} />
      </header>
      {answer.error ? <Failed error={answer.error} /> : answer.value && <Bars answer={answer.value} shown={shown} />}
    </section>
  );
}

/** Labels that tell nodes apart, and what every node has. */
function ByChoice({ by }: { by: string }) {
  const app = useApp();
  const labels = (useAtom(app.choices)?.labels ?? []).map(({ name }) => name);
  const names = [...new Set([by, ...labels, "cluster", "kernel:release"])];
  return (
    <label>
      by{" "}
      <select id="by" value={by} title="the label by which bars are stacked (b)" onChange={(event) => app.move({ by: event.currentTarget.value })}>
        {names.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  );
}

function Legend({ shown, by }: { shown: Stack[]; by: string }) {
  const app = useApp();
  const { where } = useAtom(app.state);
  const look = useAtom(theme);
  const choose = (stack: Stack) => app.move({ where: toggledWhere(where, stack.value === null ? `not ${by}` : equals(by, stack.value)) });
  return (
    <span class="stack-names">
      {shown.map((stack, place) => (
        <button key={stack.name} type="button" disabled={stack.isRest} onClick={() => choose(stack)} title={`${stack.nodes.toLocaleString("en")} nodes; a click chooses them`}>
          <i class={place % 2 ? "swatch hatched" : "swatch"} style={{ background: STACK_COLOURS[look][place % 7] }} /> {stack.name} <b>{stack.total.toLocaleString("en")}</b> <span class="faint">({stack.nodes.toLocaleString("en")} nodes)</span>
        </button>
      ))}
    </span>
  );
}

function Bars({ answer, shown }: { answer: TimelineAnswer; shown: Stack[] }) {
  const app = useApp();
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(area);
  const look = useAtom(theme);
  const [hovered, setHovered] = useState<number | null>(null);
  const [brushed, setBrushed] = useState<Range | null>(null);
  const columns = answer.starts.length;
  const first = Date.parse(answer.starts[0] ?? answer.from);
  const span: Range = [first, first + columns * answer.bucket_s * 1000];
  useEffect(() => {
    if (canvas.current && width) drawBars(canvas.current, shown, { span, width, theme: look, hovered });
  });
  const pointed = (event: PointerEvent) => {
    const column = clamp(Math.floor((event.offsetX / width) * columns), 0, columns - 1);
    setHovered(columns ? column : null);
    if (columns && !event.buttons) showTip(event, tipOf(shown, column, columns, span));
  };
  const pressed = (event: PointerEvent) => {
    const at = scale(span, width);
    startGesture(event, area.current!, {
      move: (from, to) => (hideTip(), setBrushed([Math.min(from.x, to.x), Math.max(from.x, to.x)])),
      drop: (from, to) => {
        setBrushed(null);
        const [since, until] = [from.x, to.x].sort((a, b) => a - b).map((pixel) => isoSecond(at.value(clamp(pixel, 0, width))));
        app.move({ since: since!, until: until! });
      },
    });
  };
  return (
    <div ref={area} class="bars" style={{ height: BARS_PX }} onPointerMove={pointed} onPointerDown={pressed} onPointerLeave={() => (setHovered(null), hideTip())}>
      <canvas ref={canvas} role="img" aria-label="counts over time" data-ready={width ? "yes" : "no"} />
      {brushed && <i class="band window" style={{ left: brushed[0], width: brushed[1] - brushed[0] }} />}
      {!shown.some(({ total }) => total) && <p class="nothing">nothing of this kind happened</p>}
    </div>
  );
}

const isoSecond = (ms: number): string => new Date(Math.round(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");

function tipOf(shown: readonly Stack[], column: number, columns: number, span: Range): string[] {
  const step = (span[1] - span[0]) / columns;
  const from = new Date(span[0] + column * step);
  const counts = shown.filter(({ counts }) => counts[column]).map(({ name, counts }) => `${name}: ${counts[column]!.toLocaleString("en")}`);
  return [`${dayText(from)} ${timeText(from, 60_000)} UTC, ${durationText(step)}`, ...(counts.length ? counts : ["nothing"])];
}
