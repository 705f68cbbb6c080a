// The flame graph of the window: zoom, search, filters, grouping, callers, and the difference to a baseline.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useLatest } from "../lib/latest";
import { clamp, length, same, scaled, within, type Range } from "../lib/range";
import { useWidth } from "../lib/size";
import { theme } from "../lib/theme";
import { changeOf, height, KINDS, layout, leastShare, nodeAt, path, search, type Flame, type Found } from "../logic/flame";
import { durationText, rangeText } from "../logic/moment";
import { processText, type State } from "../logic/state";
import { drawFlame, FRAME_PX } from "../draw/flame";
import { useApp, type App } from "./app";
import { FlameTools } from "./flame_tools";
import { Lane } from "./lane";
import { hideTip, showTip } from "./tooltip";

const WHOLE: Range = [0, 1];
const NARROWEST = 1e-5;
const REST_MS = 150;

export function FlameLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const { flame, graph, isAsking, error } = useFlame(state);
  const found = useMemo(() => (flame ? search(flame, state.search) : null), [flame, state.search]);
  // While another graph is asked for, the zoom is still of the one before.
  const keep = isAsking ? undefined : (zoom: Range | null) => app.move({ ...app.state.get(), zoom });
  return (
    <Lane id="flame" title={titleOf(state, app)} note={error?.message ?? noteOf(flame, found, state)} isAsking={isAsking} tools={<FlameTools flame={flame} />}>
      {flame && height(flame) > 0 ? <FlameSurface flame={flame} graph={graph} unit={unitOf(state)} found={found} kept={state.zoom} keep={keep} /> : <p class="empty">{emptyText(state, isAsking)}</p>}
      {flame?.change ? <ChangeKey /> : <KindKey unit={unitOf(state)} />}
    </Lane>
  );
}

function useFlame(state: State) {
  const app = useApp();
  const { window: wanted, baseline, cpu, pid, comm, cgroup, group, isTurned, of } = state;
  // The frames that this zoom can show: a deeper one, or a search, asks for more of the same graph.
  const least = leastShare(state.zoom ? length(state.zoom) : 1, state.search !== "");
  const key = wanted && [wanted, baseline, cpu, pid, comm, cgroup, group, isTurned, of].join("/");
  const ask = async (signal: AbortSignal) => {
    const answer = await app.source.flame({ window: wanted!, baseline, cpu, pid, comm, cgroup, group, isTurned, of, least }, signal);
    return { flame: layout(answer), graph: key!, least };
  };
  const last = useRef<{ flame: Flame; graph: string; least: number } | null>(null);
  const isEnough = last.current?.graph === key && (last.current.least <= least || !last.current.flame.unsent);
  const { value, isAsking, error } = useLatest(key && `${key}/${isEnough ? last.current!.least : least}`, ask);
  last.current = value;
  return { flame: value?.flame ?? null, graph: value?.graph ?? "", isAsking, error };
}

const unitOf = ({ of }: State): string => (of === "waits" ? "ms waited" : "samples");

function titleOf(state: State, app: App): string {
  if (!state.window) return "Flame graph";
  const who = [state.cpu === null ? "all cores" : `core ${state.cpu}`, processText(state), state.cgroup].filter(Boolean).join(", ");
  const against = state.baseline ? ` against ${rangeText(app.clock, state.baseline)}` : "";
  return `${state.of === "waits" ? "Who waited" : "Who ran"} on ${who}, ${rangeText(app.clock, state.window)} (${durationText(length(state.window))})${against}`;
}

function noteOf(flame: Flame | null, found: Found | null, state: State): string | undefined {
  if (!flame) return undefined;
  const samples = `${flame.samples.toLocaleString("en")} ${unitOf(state)}`;
  const matched = found && state.search ? ` · “${state.search}” in ${(found.share * 100).toFixed(1)} % of them` : "";
  // What the chosen filter leaves out needs no telling.
  return [samples + matched, ...flame.leftOut.filter((text) => !text.endsWith("do not pass the filter"))].join(" · ");
}

function emptyText(state: State, isAsking: boolean): string {
  if (!state.window) return "Drag over any lane above to choose a window; its flame graph appears here.";
  if (!isAsking && state.of === "waits") return "No wait over the recorder's threshold ended here, or the filter leaves none.";
  return isAsking ? "reading samples …" : "No samples here: the core was idle, the filter leaves nothing, or nothing was recorded.";
}

interface FlameSurfaceProps {
  flame: Flame;
  /** Which graph it is: more frames of the same one leave the zoom as it is. */
  graph?: string;
  unit?: string;
  found: Found | null;
  /** The zoom that a link leads to, and who keeps it for one; without them it is forgotten. */
  kept?: Range | null;
  keep?: ((zoom: Range | null) => void) | undefined;
}

export function FlameSurface({ flame, graph = "", unit = "samples", found, kept = null, keep }: FlameSurfaceProps) {
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(area);
  const look = useAtom(theme);
  const [zoom, setZoom] = useKeptZoom(graph || flame, kept, keep);
  const [hovered, setHovered] = useState<number | null>(null);
  const chosen = useChosen(flame, graph || flame);
  const height_px = height(flame) * FRAME_PX;
  useLayoutEffect(() => {
    if (!canvas.current || !width) return;
    drawFlame(canvas.current, flame, { zoom, width, theme: look, found, hovered, chosen: chosen.current, top_px: 0, height_px });
    // The lanes above pan at the screen's rate: a large graph must not be drawn anew with each of their pictures.
  }, [flame, zoom, width, look, found, hovered, height_px]);
  const at = (event: MouseEvent): number | null => {
    const box = area.current!.getBoundingClientRect();
    const share = zoom[0] + ((event.clientX - box.left) / width) * length(zoom);
    return nodeAt(flame, Math.floor((event.clientY - box.top) / FRAME_PX), share);
  };
  const pointed = (event: PointerEvent) => {
    const node = at(event);
    setHovered(node);
    if (node === null) hideTip();
    else showTip(event, frameTip(flame, node, unit));
  };
  const zoomTo = (node: number | null) => {
    chosen.current = node;
    setZoom(node === null ? WHOLE : [flame.left[node]!, flame.right[node]!]);
  };
  useFlameWheel(area, width, setZoom);
  useFlameKeys(area, flame, unit, chosen, zoomTo, setZoom);
  return (
    <div class="surface-row deep-stacks">
      <div class="gutter">
        {zoom !== WHOLE && (
          <button type="button" onClick={() => zoomTo(null)} title="show all (Esc)">
            ⤢ all
          </button>
        )}
      </div>
      <div ref={area} class="surface flame" style={{ height: height_px }} tabIndex={0} role="img" id="flame"
        aria-label="flame graph; arrow keys walk through the frames, Enter zooms" data-nodes={flame.parent.length}
        onPointerMove={pointed} onPointerLeave={() => (setHovered(null), hideTip())} onClick={(event) => zoomTo(at(event))}>
        <canvas ref={canvas} data-ready="yes" />
      </div>
    </div>
  );
}

/** The frame that was chosen; when more frames of the same graph come, the one in its place. */
function useChosen(flame: Flame, graph: unknown): { current: number | null } {
  const chosen = useRef<number | null>(null);
  const known = useRef({ flame, graph });
  if (known.current.flame !== flame) {
    const [before, node] = [known.current.flame, chosen.current];
    const isSame = known.current.graph === graph && node !== null;
    chosen.current = isSame ? nodeAt(flame, before.depth[node]!, (before.left[node]! + before.right[node]!) / 2) : null;
    known.current = { flame, graph };
  }
  return chosen;
}

/** Kept when it rests, because it moves at the screen's rate; another graph or link brings its own. */
function useKeptZoom(graph: unknown, kept: Range | null, keep: FlameSurfaceProps["keep"]) {
  const [zoom, setZoom] = useState<Range>(kept ?? WHOLE);
  const known = useRef(kept);
  useEffect(() => {
    known.current = kept;
    setZoom(kept ?? WHOLE);
  }, [graph]);
  useEffect(() => {
    if (same(kept, known.current)) return;
    known.current = kept;
    setZoom(kept ?? WHOLE);
  }, [kept]);
  useEffect(() => {
    if (!keep) return undefined;
    const timer = setTimeout(() => {
      const rested = length(zoom) < 1 ? zoom : null;
      if (same(rested, known.current)) return;
      known.current = rested;
      keep(rested);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [zoom, !keep]);
  return [zoom, setZoom] as const;
}

function frameTip(flame: Flame, node: number, unit: string): string[] {
  const name = flame.names[flame.name[node]!]!;
  const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
  if (flame.shares) {
    const change = changeOf(flame, node);
    const said = change ? `${change.sign} ${change.word}` : "about the same";
    return [name, `${said}: ${percent(flame.shares.baseline[node]!)} of the baseline's ${unit}, ${percent(flame.shares.window[node]!)} of these`];
  }
  const share = flame.right[node]! - flame.left[node]!;
  const weight = Math.round(share * flame.total).toLocaleString("en");
  return [name, `${KINDS[flame.kind[node]!]} · ${weight} ${unit}, ${percent(share)} · itself ${percent(flame.own[node]! / (flame.total || 1))}`, "click: zoom in"];
}

/** The wheel zooms with Ctrl or Alt and pans sideways, as in the lanes. */
function useFlameWheel(area: { current: HTMLDivElement | null }, width: number, setZoom: (change: (zoom: Range) => Range) => void): void {
  useEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    const turned = (event: WheelEvent) => {
      const isZoom = event.ctrlKey || event.altKey || event.metaKey;
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (!isZoom && Math.abs(sideways) <= Math.abs(event.deltaY) && !event.shiftKey) return;
      event.preventDefault();
      const share = (event.clientX - element.getBoundingClientRect().left) / (width || 1);
      setZoom((zoom) => {
        if (!isZoom) return within([zoom[0] + (sideways / width) * length(zoom), zoom[1] + (sideways / width) * length(zoom)], WHOLE);
        const size = clamp(length(zoom) * Math.exp(event.deltaY / 300), NARROWEST, 1);
        return within(scaled(zoom, size / length(zoom), zoom[0] + share * length(zoom)), WHOLE);
      });
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  }, [width]);
}

/** Down goes to the widest call, up to the caller, left and right to the neighbours: the frame that is chosen fills the width. */
function useFlameKeys(
  area: { current: HTMLDivElement | null }, flame: Flame, unit: string, chosen: { current: number | null }, zoomTo: (node: number | null) => void, setZoom: (zoom: Range) => void,
): void {
  useEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    const pressed = (event: KeyboardEvent) => {
      const next = step(flame, chosen.current, event.key);
      if (next === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      zoomTo(next);
      if (next === null) setZoom(WHOLE);
      else showTip(tipPlace(element, flame, next), [...frameTip(flame, next, unit).slice(0, 2), path(flame, next).join(" > ")]);
    };
    element.addEventListener("keydown", pressed);
    return () => element.removeEventListener("keydown", pressed);
  }, [flame]);
}

function tipPlace(element: HTMLElement, flame: Flame, node: number) {
  const box = element.getBoundingClientRect();
  return { clientX: box.left + 20, clientY: box.top + (flame.depth[node]! + 1) * FRAME_PX };
}

/** The frame that a key leads to; null is the whole graph, undefined another key. */
function step(flame: Flame, node: number | null, key: string): number | null | undefined {
  const widest = (from: number, to: number, parent: number) => {
    let best: number | null = null;
    for (let at = from; at < to; at += 1) {
      const width = flame.right[at]! - flame.left[at]!;
      if (flame.parent[at] === parent && (best === null || width > flame.right[best]! - flame.left[best]!)) best = at;
    }
    return best;
  };
  if (key === "Escape") return null;
  if (key === "ArrowDown") {
    const depth = node === null ? 0 : flame.depth[node]! + 1;
    return widest(flame.first[depth] ?? 0, flame.first[depth + 1] ?? 0, node ?? -1) ?? node;
  }
  if (node === null) return undefined;
  if (key === "ArrowUp") return flame.parent[node]! < 0 ? null : flame.parent[node]!;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return undefined;
  const beside = node + (key === "ArrowRight" ? 1 : -1);
  return flame.depth[beside] === flame.depth[node] ? beside : node;
}

function KindKey({ unit }: { unit: string }) {
  return (
    <p class="key">
      <i class="kind kernel" /> kernel<sub>k</sub> <i class="kind user" /> user <i class="kind jit" /> jit<sup>j</sup> <i class="kind group" /> group
      <span> · outermost frame on top, width is {unit === "samples" ? "time" : unit}, order is by name</span>
    </p>
  );
}

function ChangeKey() {
  return (
    <p class="key">
      <i class="kind grew" /> ▲ more than in the baseline <i class="kind shrank" /> ▼ less ✚ new ✖ gone <span> · width is the mean of both</span>
    </p>
  );
}
