// Requests to this server, and to no other.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let key = sessionStorage.getItem("key") ?? "";

export function useKey(value) {
  key = value;
  sessionStorage.setItem("key", value);
}

async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (key) headers.authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server cannot be reached. What you have answered so far is kept.");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({ error: response.statusText }));
  throw new Refused(response.status, told.error);
}

const json = async (path, options) => {
  const response = await send(path, options);
  return response.status === 204 ? null : response.json();
};
const body = (method, value, signal) => ({
  method, signal, body: JSON.stringify(value), headers: { "content-type": "application/json" },
});

export const get = (path, signal) => json(path, { signal });
export const post = (path, value = {}, signal) => json(path, body("POST", value, signal));
export const put = (path, value) => json(path, body("PUT", value));
export const remove = (path) => json(path, { method: "DELETE" });
export const upload = (path, file) => json(path, { method: "POST", body: file, headers: { "content-type": "text/plain" } });

export async function download(path, name) {
  const blob = await (await send(path)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
