// The entry of the fleet's page, which a collector serves.
import "../style.css";
import "./fleet.css";
import { watchTheme } from "../lib/theme";
import { collectorSource } from "./logic/source";
import { start } from "./views/start";

watchTheme();
void start(document.getElementById("page")!, collectorSource());
