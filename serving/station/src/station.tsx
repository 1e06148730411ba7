// Entry: who is here, then the pages.

import { render } from "preact";
import { Login } from "./login";
import { startKeys } from "./keys";
import { session, whoAmI, whoIsHere } from "./session";
import { Shell } from "./shell";
import "./theme.css";
import "./shell.css";

function Station() {
  const here = session.value;
  if (here.state === "asking") return null;
  return (
    <>
      {whoIsHere() && <Shell />}
      {here.state !== "in" && <Login />}
    </>
  );
}

startKeys();
void whoAmI();
render(<Station />, document.getElementById("station")!);
