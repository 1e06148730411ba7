import { defineConfig } from "vite";

// File names carry no hash: the server sends every file with an ETag and asks browsers to revalidate, and the
// bundle that is committed differs from one build to the next only where the sources do.
export default defineConfig({
  base: "/station/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    assetsDir: "",
    target: "es2022",
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:3000", "/station/samples": "http://127.0.0.1:3000" } },
});
