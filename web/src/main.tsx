// The page's entry: from a server, or from the data that an export carries within itself.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { watchTheme } from "./lib/theme";
import { unzipped } from "./lib/packed";
import { embeddedSource } from "./logic/embedded_source";
import { serverSource } from "./logic/server_source";
import { start } from "./views/start";

watchTheme();
const embedded = document.getElementById("embedded")?.textContent;
void start(document.getElementById("page")!, async (at) => (embedded ? embeddedSource(await unzipped(embedded), at) : serverSource(at)));
