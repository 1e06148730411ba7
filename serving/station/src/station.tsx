// Entry: who is here, then the pages.

import { effect } from "@preact/signals";
import { render } from "preact";
import { snapshot } from "./board/review";
import { KeysHelp } from "./help";
import { guardAgainstScans, setScanListener, startKeys } from "./keys";
import { Login } from "./login";
import { PaceQuestion } from "./question";
import { openSerial } from "./scan";
import { may, session, whoAmI, whoIsHere } from "./session";
import { Shell } from "./shell";
import "./theme.css";
import "./shell.css";
// Last, so that paper has the last word.
import "./print.css";

function Station() {
  const here = session.value;
  if (here.state === "asking") return null;
  return (
    <>
      {whoIsHere() && <Shell />}
      {here.state === "in" && <PaceQuestion />}
      <KeysHelp />
      {here.state !== "in" && <Login />}
    </>
  );
}

startKeys();
guardAgainstScans(snapshot);
effect(() => setScanListener(may("operator") ? (serial) => void openSerial(serial) : null));
void whoAmI();
render(<Station />, document.getElementById("station")!);
