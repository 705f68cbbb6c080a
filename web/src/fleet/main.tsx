// The entry of the fleet's page: served by a collector, or a file with one flame graph in it.
import { render } from "preact";
import "../style.css";
import "./fleet.css";
import { watchTheme } from "../lib/theme";
import { unzipped } from "../lib/packed";
import { collectorSource } from "./logic/source";
import { FlameFile, type FlameFileProps } from "./views/flame_file";
import { start } from "./views/start";

watchTheme();
const place = document.getElementById("page")!;
const embedded = document.getElementById("embedded")?.textContent;
if (embedded) {
  void unzipped(embedded).then((data) => {
    const file = JSON.parse(new TextDecoder().decode(data)) as FlameFileProps;
    document.title = `${file.title} · necroscope`;
    render(<FlameFile {...file} />, place);
  });
} else void start(place, collectorSource());
