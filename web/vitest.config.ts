// Tests of the pure parts; the page as a whole is tested in a real browser by tests/integration/test_view_page.py.
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["test/**/*.test.ts"], environment: "node" } });
