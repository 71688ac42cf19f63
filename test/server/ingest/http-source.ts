import { createHmac } from 'node:crypto';
import type { Answer, Api } from '../api.js';

export interface Posted {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Answer['body'];
}

/** Creates an HTTP source; `post` sends a request to its URL like a provider. */
export async function httpSource(
  api: Api,
  project: { readonly path: string },
  fields: Record<string, unknown> = {},
) {
  const made = await api.call('POST', `${project.path}/sources`, {
    name: 'hooks',
    type: 'http',
    ...fields,
  });
  if (made.status !== 201) throw new Error(`the source was refused: ${made.text}`);
  const { uid, url: absolute } = made.body.data as { uid: string; url: string };
  const url = new URL(absolute).pathname;
  const post = async (
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    query = '',
  ): Promise<Posted> => {
    const response = await fetch(api.url + url + query, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text.startsWith('{') ? JSON.parse(text) : {},
    };
  };
  return { uid, url, view: made.body.data, path: `${project.path}/sources/${uid}`, post };
}

export function sign(
  secret: string | Buffer,
  text: string | Uint8Array,
  encoding: 'hex' | 'base64' = 'hex',
  hash: 'sha1' | 'sha256' | 'sha512' = 'sha256',
): string {
  return createHmac(hash, secret).update(text).digest(encoding);
}
