// Builds the page into the Python package: one script and one style sheet with fixed names, so that an export can inline them.
import { cpSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const output = fileURLToPath(new URL("../src/necroscope/views/web/static", import.meta.url));

// speedscope is served beside the page under its own policy. Its demo profile is left out.
function speedscope(): Plugin {
  const from = fileURLToPath(new URL("node_modules/speedscope/dist/release", import.meta.url));
  return {
    name: "speedscope",
    closeBundle() {
      for (const name of readdirSync(from)) {
        if (!name.startsWith("perf-vertx")) cpSync(`${from}/${name}`, `${output}/speedscope/${name}`);
      }
    },
  };
}

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  plugins: [speedscope()],
  build: {
    outDir: output,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      output: { entryFileNames: "assets/page.js", assetFileNames: "assets/page[extname]", inlineDynamicImports: true },
    },
  },
});
