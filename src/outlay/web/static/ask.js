/** Questions to the server: JSON in, the command's own JSON out; a plan comes as events. */

/** @typedef {{code: string, what: string, rule: string, got: string, fix: string, flag?: string}} Fault */

/** An unreadable question: the faults that the command line prints. */
export class Faults extends Error {
  /** @param {Fault[]} faults */
  constructor(faults) {
    super(faults.map((each) => each.what).join("; "));
    this.faults = faults;
  }
}

const lost = (what, got) =>
  new Faults([
    { code: "", what, rule: "the page asks the server that it came from", got, fix: "start it again: outlay serve" },
  ]);

/**
 * Ask one command. Throws Faults; an AbortError where `signal` ends it.
 * @param {string} command @param {object} body @param {AbortSignal} [signal] @returns {Promise<any>}
 */
export async function ask(command, body, signal) {
  const answer = await send(command, body, "application/json", signal);
  return answer.json();
}

/** @param {string} command @param {object} body @param {string} accept @param {AbortSignal} [signal] */
async function send(command, body, accept, signal) {
  let answer;
  try {
    answer = await fetch(`/api/${command}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: accept },
      body: JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw lost("the server does not answer", String(error.message));
  }
  if (answer.ok) return answer;
  throw await refusal(answer);
}

/** @param {Response} answer */
async function refusal(answer) {
  let found = null;
  try {
    found = await answer.json();
  } catch {
    /* no JSON: said below */
  }
  if (Array.isArray(found?.errors)) return new Faults(found.errors);
  return lost("the server could not answer", `${answer.status} ${answer.statusText}`);
}

/**
 * Ask for a plan; `progress` is called for each event of progress. Aborting `signal` stops the computation.
 * @param {object} body @param {(event: any) => void} progress @param {AbortSignal} signal @returns {Promise<any>}
 */
export async function plan(body, progress, signal) {
  const answer = await send("plan", body, "text/event-stream", signal);
  if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return answer.json();
  for await (const [kind, data] of events(answer.body)) {
    if (kind === "progress") progress(data);
    if (kind === "answer") return data;
    if (kind === "errors") throw new Faults(data.errors ?? data);
  }
  throw lost("the search ended without an answer", "the connection was closed");
}

/** The events of a stream. @param {ReadableStream<Uint8Array>} body */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r", "");
      let end;
      while ((end = text.indexOf("\n\n")) >= 0) {
        const found = event(text.slice(0, end));
        text = text.slice(end + 2);
        if (found) yield found;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** One event: its kind and its data. @param {string} block @returns {[string, any] | null} */
function event(block) {
  let kind = "message",
    data = "";
  for (const each of block.split("\n")) {
    if (each.startsWith("event:")) kind = each.slice(6).trim();
    else if (each.startsWith("data:")) data += each.slice(5).replace(/^ /, "");
  }
  return data ? [kind, JSON.parse(data)] : null;
}
