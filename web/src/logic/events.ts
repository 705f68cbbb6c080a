// Events for a lane: each kind has a letter and a rank, and those that would lie on each other become one mark.
import type { Scale } from "../lib/range";
import type { EventRow } from "./answers";

const KIND_TEXT: Record<string, [mark: string, text: string, rank: number]> = {
  nic_reset: ["R", "network device reset", 0],
  soft_lockup: ["L", "soft lockup", 0],
  hard_lockup: ["L", "hard lockup", 0],
  rcu_stall: ["S", "RCU stall", 0],
  hung_task: ["H", "hung task", 0],
  oom_kill: ["O", "out of memory kill", 0],
  ray_node_dead: ["N", "Ray node died", 0],
  softirq_stall: ["Q", "softirq stalled", 1],
  core_saturated: ["C", "core held", 1],
  container_die: ["D", "container died", 2],
  unit_restart: ["U", "unit restarted", 2],
  container_start: ["D", "container started", 3],
};

export interface Mark {
  pixel: number;
  mark: string;
  rank: number;
  events: EventRow[];
}

export const kindText = (kind: string): string => KIND_TEXT[kind]?.[1] ?? kind.replaceAll("_", " ");
export const kindMark = (kind: string): string => KIND_TEXT[kind]?.[0] ?? (kind[0] ?? "?").toUpperCase();
export const kindRank = (kind: string): number => KIND_TEXT[kind]?.[2] ?? 2;

/** Events in order of time; a mark stands for all events within its width, and shows the gravest of them. */
export function marks(events: readonly EventRow[], moments: readonly number[], scale: Scale, width_px: number): Mark[] {
  const found: Mark[] = [];
  events.forEach((event, place) => {
    const pixel = scale.pixel(moments[place]!);
    const last = found[found.length - 1];
    if (last && pixel - last.pixel < width_px) {
      last.events.push(event);
      if (kindRank(event.kind) < last.rank) Object.assign(last, { mark: kindMark(event.kind), rank: kindRank(event.kind) });
    } else {
      found.push({ pixel, mark: kindMark(event.kind), rank: kindRank(event.kind), events: [event] });
    }
  });
  return found;
}
