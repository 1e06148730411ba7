// Header with the pages, and the page that is open.

import { lazyPage } from "./lazy";
import { link, place } from "./route";
import { logOut, may, session } from "./session";
import { chooseTheme, theme, type Theme } from "./theme";
import { chooseLanguage, language, LANGUAGES, t, type Key, type Language } from "./words";
import { Notices } from "./notices";
import { Unsent } from "./unsent";

const PAGES = {
  queue: lazyPage(() => import("./pages/queue").then((page) => page.Queue)),
  board: lazyPage(() => import("./pages/board").then((page) => page.Board)),
  inspect: lazyPage(() => import("./pages/inspect").then((page) => page.Inspect)),
  recipes: lazyPage(() => import("./pages/recipes").then((page) => page.Recipes)),
  figures: lazyPage(() => import("./pages/figures").then((page) => page.Figures)),
};
const TABS = [
  { page: "queue", role: "operator" },
  { page: "inspect", role: "line" },
  { page: "recipes", role: "line" },
  { page: "figures", role: "operator" },
] as const;

export function Shell() {
  const at = place.value.page;
  const Page = PAGES[at as keyof typeof PAGES];
  return (
    <>
      <a class="skip" href="#content" onClick={toContent}>
        {t("shell.skip")}
      </a>
      <Header at={at} />
      <Notices />
      <main id="content" tabIndex={-1} data-page={at}>
        {Page ? <Page /> : <p class="empty">{t("shell.unknown")}</p>}
      </main>
    </>
  );
}

function toContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Header({ at }: { at: string }) {
  const here = session.value;
  const who = here.state === "in" ? here.who : null;
  return (
    <header class="shell">
      <img src="/station/icon.svg" alt="" width="26" height="26" />
      <h1>{t("shell.title")}</h1>
      <nav aria-label={t("shell.pages")}>
        {TABS.filter(({ role }) => may(role)).map(({ page }) => (
          <a key={page} href={link(page)} aria-current={at === page || (at === "board" && page === "queue") ? "page" : undefined}>
            {t(`shell.${page}` as Key)}
          </a>
        ))}
      </nav>
      <div class="settings">
        <Unsent />
        <select
          aria-label={t("shell.language")}
          value={language.value}
          onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}
        >
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
        <select
          aria-label={t("shell.theme")}
          value={theme.value}
          onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}
        >
          {(["auto", "light", "dark"] as const).map((one) => (
            <option key={one} value={one}>
              {t(`shell.theme.${one}`)}
            </option>
          ))}
        </select>
        {who?.actor != null && (
          <>
            <span class="muted">
              {who.actor} ({who.role})
            </span>
            <button type="button" class="link" onClick={() => void logOut()}>
              {t("shell.logout")}
            </button>
          </>
        )}
      </div>
    </header>
  );
}
