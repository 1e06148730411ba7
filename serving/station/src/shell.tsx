// Header with the pages, and the page that is open.

import { lazyPage } from "./lazy";
import { link, place } from "./route";
import { logOut, may, whoIsHere, type Role } from "./session";
import { chooseTheme, theme, type Theme } from "./theme";
import { chooseLanguage, language, LANGUAGES, t, type Language } from "./words";
import { Notices } from "./notices";
import { Unsent } from "./unsent";

const PAGES = {
  queue: lazyPage(() => import("./pages/queue").then((page) => page.Queue)),
  board: lazyPage(() => import("./pages/board").then((page) => page.Board)),
  inspect: lazyPage(() => import("./pages/inspect").then((page) => page.Inspect)),
  recipes: lazyPage(() => import("./pages/recipes").then((page) => page.Recipes)),
  figures: lazyPage(() => import("./pages/figures").then((page) => page.Figures)),
  lot: lazyPage(() => import("./pages/lot").then((page) => page.Lot)),
  models: lazyPage(() => import("./pages/models").then((page) => page.Models)),
};
type Page = keyof typeof PAGES;
const ROLES: Record<Page, Role> = {
  queue: "operator",
  board: "operator",
  inspect: "line",
  recipes: "line",
  figures: "operator",
  lot: "operator",
  models: "operator",
};
const TABS = ["queue", "inspect", "recipes", "models", "figures"] as const;
// Pages without a tab of their own, and the tab they are reached from.
const WITHIN: Partial<Record<Page, Page>> = { board: "queue", lot: "figures" };

export function Shell() {
  const asked = place.value.page;
  // Where everybody starts; a line has no queue.
  const at = asked === "queue" && !may(ROLES.queue) ? "inspect" : asked;
  return (
    <>
      <a class="skip" href="#content" onClick={toContent}>
        {t("shell.skip")}
      </a>
      <Header at={at} />
      <Notices />
      <main id="content" tabIndex={-1} data-page={at}>
        {isPage(at) ? <Allowed page={at} /> : <p class="empty">{t("shell.unknown")}</p>}
      </main>
    </>
  );
}

function isPage(name: string): name is Page {
  return Object.hasOwn(PAGES, name);
}

function Allowed({ page }: { page: Page }) {
  const Page = PAGES[page];
  if (may(ROLES[page])) return <Page />;
  return <p class="empty">{t("shell.forbidden", { wanted: ROLES[page], role: whoIsHere()?.role ?? "" })}</p>;
}

function toContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Header({ at }: { at: string }) {
  const who = whoIsHere();
  const tab = isPage(at) ? (WITHIN[at] ?? at) : null;
  return (
    <header class="shell">
      <img src="/station/icon.svg" alt="" width="26" height="26" />
      <h1>{t("shell.title")}</h1>
      <nav aria-label={t("shell.pages")}>
        {TABS.filter((page) => may(ROLES[page])).map((page) => (
          <a key={page} href={link(page)} aria-current={tab === page ? "page" : undefined}>
            {t(`shell.${page}`)}
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
