// Calls of the API. The header tells it that this page, and no other site, has sent them.

export class Refused extends Error {
  constructor(status, error) {
    super(error.message || `The server returned HTTP ${status}.`);
    this.status = status;
    this.error = error;
  }
}

// A server that hangs must not leave a button busy for ever; some requests wait for another server for a while.
const CALL_SECONDS = 90;
const PART_SECONDS = 20;

export async function call(method, path, body, more = {}) {
  const headers = { "X-Holdfast-Page": "1", ...more };
  const form = body instanceof FormData;
  if (body !== undefined && !form) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined || form ? body : JSON.stringify(body), signal: form ? undefined : AbortSignal.timeout(1000 * CALL_SECONDS) });
  } catch (problem) {
    const late = problem.name === "TimeoutError";
    throw new Refused(0, {
      code: late ? "too_slow" : "unreachable",
      message: late ? `The server has not responded for ${CALL_SECONDS} s. The request may still succeed: check before you retry.` : "The server cannot be reached. Nothing is lost; try again.",
    });
  }
  const text = await answer.text().catch(() => "");
  let told = {};
  try {
    told = text ? JSON.parse(text) : {};
  } catch {
    told = {};
  }
  if (answer.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
  if (!answer.ok) throw new Refused(answer.status, told.error || {});
  return { status: answer.status, body: told };
}

// A part of the web UI as rendered by the server; null if it no longer exists, which is then shown, or is unavailable.
export async function part(path) {
  try {
    const answer = await fetch(path, { headers: { "X-Holdfast-Part": "main" }, signal: AbortSignal.timeout(1000 * PART_SECONDS) });
    if (answer.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
    if (answer.status === 404) document.getElementById("gone").hidden = false;
    return answer.ok ? await answer.text() : null;
  } catch {
    return null;
  }
}
