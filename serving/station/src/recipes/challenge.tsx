// Challenge boards: known-bad boards that the line must call whole. One that is not locks the recipe.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { notify, notifyError } from "../notices";
import { may } from "../session";
import { t, time, told } from "../words";
import { clearChallenge, readChallenge, storeChallenge } from "./calls";
import { classes } from "./classes";
import type { Challenge, ChallengeBoard } from "./wire";

export interface ChallengeProps {
  name: string;
  challenge: Challenge | null;
  set: (challenge: Challenge) => void;
}

export function ChallengeTab({ name, challenge, set }: ChallengeProps) {
  useEffect(() => {
    readChallenge(name).then(set, notifyError);
  }, [name]);
  if (!challenge) return <p class="empty">{t("shell.loading")}</p>;
  return (
    <div class="challenge">
      <LockCard name={name} challenge={challenge} set={set} />
      <Boards key={JSON.stringify(challenge.boards)} name={name} challenge={challenge} set={set} />
    </div>
  );
}

function LockCard({ name, challenge, set }: ChallengeProps & { challenge: Challenge }) {
  const reason = useSignal("");
  const { locked, since, why, due } = challenge.state;
  const isOverdue = due !== null && new Date(due).getTime() < Date.now();

  async function clear(event: Event) {
    event.preventDefault();
    try {
      set(await clearChallenge(name, reason.value.trim()));
      notify(t("recipes.challenge.cleared"));
    } catch (error) {
      notifyError(error);
    }
  }

  return (
    <section class="card lock" data-locked={locked} aria-labelledby="lock-title">
      <h2 id="lock-title">{t(locked ? "recipes.challenge.locked" : "recipes.challenge.open")}</h2>
      {locked ? (
        <>
          <p>{told(why)}</p>
          {since && <p class="muted">{t("recipes.challenge.since", { when: time(since) })}</p>}
          <p>{t("recipes.challenge.locked.words")}</p>
          {may("engineer") && (
            <form onSubmit={(event) => void clear(event)}>
              <label class="field">
                <span>{t("recipes.challenge.reason")}</span>
                <textarea
                  rows={2}
                  required
                  maxLength={2000}
                  value={reason}
                  onInput={(event) => (reason.value = event.currentTarget.value)}
                />
              </label>
              <button type="submit" class="primary" disabled={!reason.value.trim()}>
                {t("recipes.challenge.clear")}
              </button>
            </form>
          )}
        </>
      ) : (
        <p>{t("recipes.challenge.open.words")}</p>
      )}
      {challenge.shown && <p class="muted">{t("recipes.challenge.shown", { when: time(challenge.shown) })}</p>}
      {due && (
        <p class={isOverdue ? "overdue" : "muted"}>
          {t(isOverdue ? "recipes.challenge.overdue" : "recipes.challenge.due", { when: time(due) })}
        </p>
      )}
    </section>
  );
}

function Boards({ name, challenge, set }: ChallengeProps & { challenge: Challenge }) {
  const boards = useSignal<ChallengeBoard[]>(challenge.boards);
  const every = useSignal<number | null>(challenge.every_hours);
  const isFixed = !may("engineer");
  const before = JSON.stringify([challenge.boards, challenge.every_hours]);
  const isSame = JSON.stringify([boards.value, every.value]) === before;
  const isWhole = boards.value.every((board) => board.serial.trim() && board.labels.length);
  const change = (index: number, changed: Partial<ChallengeBoard>) =>
    (boards.value = boards.value.map((board, at) => (at === index ? { ...board, ...changed } : board)));

  async function store() {
    try {
      const sent = boards.value.map(({ serial, labels }) => ({ serial: serial.trim(), labels }));
      set(await storeChallenge(name, sent, every.value));
      notify(t("recipes.challenge.stored"));
    } catch (error) {
      notifyError(error);
    }
  }

  return (
    <section class="card" aria-labelledby="challenge-title">
      <h2 id="challenge-title">{t("recipes.challenge.boards")}</h2>
      <p class="muted">{t("recipes.challenge.help")}</p>
      <fieldset disabled={isFixed}>
        {boards.value.map((board, index) => (
          <div key={index} class="challenge-board">
            <input
              aria-label={t("recipes.challenge.serial")}
              placeholder={t("recipes.challenge.serial")}
              maxLength={200}
              spellcheck={false}
              value={board.serial}
              onInput={(event) => change(index, { serial: event.currentTarget.value })}
            />
            <Labels board={board} set={(labels) => change(index, { labels })} />
            {!isFixed && (
              <button
                type="button"
                class="link"
                aria-label={t("inspect.remove", { name: board.serial || t("recipes.challenge.board") })}
                onClick={() => (boards.value = boards.value.filter((_, at) => at !== index))}
              >
                ×
              </button>
            )}
          </div>
        ))}
        {!isFixed && (
          <button
            type="button"
            disabled={boards.value.length >= 50}
            onClick={() => (boards.value = [...boards.value, { serial: "", labels: [] }])}
          >
            {t("recipes.challenge.add")}
          </button>
        )}
        <label class="field hours">
          <span>{t("recipes.challenge.every")}</span>
          <span class="with-unit">
            <input
              type="number"
              min="0.25"
              max="8760"
              step="any"
              value={every.value ?? ""}
              onInput={(event) => {
                const hours = event.currentTarget.valueAsNumber;
                every.value = hours > 0 ? hours : null;
              }}
            />
            {t("recipes.challenge.hours")}
          </span>
          <small>{t("recipes.challenge.every.help")}</small>
        </label>
        {!isFixed && (
          <button type="button" class="primary" disabled={isSame || !isWhole} onClick={() => void store()}>
            {t("recipes.challenge.store")}
          </button>
        )}
      </fieldset>
    </section>
  );
}

/** The classes a board must be called with; one that is named twice must be called twice. */
function Labels({ board, set }: { board: ChallengeBoard; set: (labels: string[]) => void }) {
  return (
    <span class="labels">
      {board.labels.map((label, index) => (
        <button
          key={index}
          type="button"
          class="chip"
          aria-label={t("inspect.remove", { name: label })}
          onClick={() => set(board.labels.filter((_, at) => at !== index))}
        >
          {label} ×
        </button>
      ))}
      <input
        list="challenge-classes"
        aria-label={t("recipes.challenge.labels")}
        placeholder={t("recipes.challenge.labels")}
        maxLength={200}
        onChange={(event) => {
          const label = event.currentTarget.value.trim();
          if (label) set([...board.labels, label]);
          event.currentTarget.value = "";
        }}
      />
      <datalist id="challenge-classes">
        {classes.value.map((label) => (
          <option key={label} value={label} />
        ))}
      </datalist>
    </span>
  );
}
