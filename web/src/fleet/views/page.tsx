// The fleet's page: the bars over time above, one question below.
import { useAtom } from "../../lib/atom";
import { Tooltip } from "../../views/tooltip";
import type { Reader } from "../logic/answers";
import { TABS, TAB_TEXT, type Tab } from "../logic/state";
import { AppContext, useApp, type App } from "./app";
import { ChangeTab } from "./change";
import { CompareTab } from "./compare";
import { FlameTab } from "./flame";
import { Help } from "./help";
import { IncidentsTab } from "./incidents";
import { JobsTab } from "./jobs";
import { NodesTab } from "./nodes";
import { Timeline } from "./timeline";
import { Toolbar } from "./toolbar";
import { WhyTab } from "./why";

const SHOWN: Record<Tab, () => preact.JSX.Element> = { why: WhyTab, incidents: IncidentsTab, nodes: NodesTab, compare: CompareTab, flame: FlameTab, change: ChangeTab, jobs: JobsTab };

export function Page({ app, reader }: { app: App; reader: Reader }) {
  return (
    <AppContext.Provider value={app}>
      <Toolbar reader={reader} />
      <main class="fleet">
        <Timeline />
        <Tabs />
      </main>
      <Tooltip />
      <Help />
    </AppContext.Provider>
  );
}

function Tabs() {
  const app = useApp();
  const { tab } = useAtom(app.state);
  const Shown = SHOWN[tab];
  return (
    <>
      <div class="tabs" role="tablist" aria-label="questions">
        {TABS.map((each, place) => (
          <button key={each} type="button" role="tab" id={`tab-${each}`} aria-selected={each === tab} onClick={() => app.move({ tab: each })} title={`${TAB_TEXT[each]} (${place + 1})`}>
            {TAB_TEXT[each]}
          </button>
        ))}
      </div>
      <section role="tabpanel" aria-labelledby={`tab-${tab}`} class="panel">
        <Shown />
      </section>
    </>
  );
}
