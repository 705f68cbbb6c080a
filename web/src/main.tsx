// The page's entry: from a server, or from the data that an export carries within itself.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { watchTheme } from "./lib/theme";
import { serverSource } from "./logic/server_source";
import { start } from "./views/start";

watchTheme();
void start(document.getElementById("page")!, serverSource);
