// Builds the fleet's page beside the time machine. A build of its own: a chunk that both share could not be inlined into an export.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: fileURLToPath(new URL("../src/necroscope/views/web/static", import.meta.url)),
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      input: fileURLToPath(new URL("fleet.html", import.meta.url)),
      output: { entryFileNames: "assets/fleet.js", assetFileNames: "assets/fleet[extname]", inlineDynamicImports: true },
    },
  },
});
