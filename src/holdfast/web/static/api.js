// Calls of the API. The header tells it that this page, and no other site, has sent them.

export class Refused extends Error {
  constructor(status, error) {
    super(error.message || `The API answered ${status}.`);
    this.status = status;
    this.error = error;
  }
}

export async function call(method, path, body) {
  const headers = { "X-Holdfast-Page": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, { code: "unreachable", message: "The server cannot be reached. Nothing is lost; try again." });
  }
  const text = await answer.text();
  let told = {};
  try {
    told = text ? JSON.parse(text) : {};
  } catch {
    told = {};
  }
  if (answer.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
  if (!answer.ok) throw new Refused(answer.status, told.error || {});
  return { status: answer.status, body: told };
}

// A part of a page as the server renders it; null when it is not there any more, or cannot be had now.
export async function part(path) {
  let answer;
  try {
    answer = await fetch(path, { headers: { "X-Holdfast-Part": "main" } });
  } catch {
    return null;
  }
  if (answer.status === 401) location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
  return answer.ok ? answer.text() : null;
}
