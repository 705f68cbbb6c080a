// The page: the verdict beside the lanes.
import { AppContext, type App } from "./app";
import { CgroupsLane } from "./cgroups_lane";
import { CoreLane } from "./core_lane";
import { CountersLane } from "./counters_lane";
import { EventsLane } from "./events_lane";
import { FlameLane } from "./flame_lane";
import { Gaps } from "./gaps";
import { HeatLane } from "./heat_lane";
import { Help } from "./help";
import { Axis, Overview } from "./overview";
import { TasksLane } from "./tasks_lane";
import { Toolbar } from "./toolbar";
import { Tooltip } from "./tooltip";
import { VerdictPanel } from "./verdict";
import { WaitsLane } from "./waits_lane";

export function Page({ app }: { app: App }) {
  return (
    <AppContext.Provider value={app}>
      <Toolbar />
      <main>
        <VerdictPanel />
        <div class="lanes">
          <div class="pinned">
            <Overview />
            <Axis />
          </div>
          <EventsLane />
          <CoreLane />
          <WaitsLane />
          <CgroupsLane />
          <CountersLane />
          <HeatLane />
          <FlameLane />
          <TasksLane />
          <Gaps />
        </div>
      </main>
      <Tooltip />
      <Help />
    </AppContext.Provider>
  );
}
