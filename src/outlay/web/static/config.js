/** A pasted config.json travels in the fragment of the address, deflated: it is never part of a request's address. */

const MOST = 8192; // letters of a link that still travels well

const stream = async (bytes, made) =>
  new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(made)).arrayBuffer());

/** @param {object} config @returns {Promise<string>} the fragment, without # */
export async function pack(config) {
  const bytes = await stream(new TextEncoder().encode(JSON.stringify(config)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `config=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** The config of a fragment; null where there is none. Throws where it cannot be read. @param {string} hash */
export async function unpack(hash) {
  const found = new URLSearchParams(hash.replace(/^#/, "")).get("config");
  if (!found) return null;
  const text = atob(found.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await stream(bytes, new DecompressionStream("deflate-raw"))));
}

/** What to say about a link that carries a model. @param {number} letters */
export const carried = (letters) =>
  `The model travels in the link (${(letters / 1024).toFixed(1)} kB).` +
  (letters > MOST ? " That is long for a chat: send the config.json beside it." : "");

/** What a dropped or pasted text is: a model's config, or a file to check. @param {string} name @param {string} text
 * @returns {{kind: "config", config: object} | {kind: "file"} | {kind: "none", why: string}} */
export function kindOf(name, text) {
  if (!text.trim()) return { kind: "none", why: `${name || "the text"} is empty` };
  if (/^\s*\{/.test(text)) {
    let config;
    try {
      config = JSON.parse(text);
    } catch {
      return { kind: "file" };
    }
    const keys = Object.keys(config);
    if (
      ["hidden_size", "num_hidden_layers", "model_type", "n_layer", "d_model", "n_embd"].some((key) =>
        keys.includes(key),
      )
    ) {
      return { kind: "config", config };
    }
    if (keys.some((key) => /_config$/.test(key) && typeof config[key] === "object" && config[key]?.hidden_size)) {
      return { kind: "config", config };
    }
  }
  return { kind: "file" };
}
