import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import { isText, placeAt, site } from '@gateway/docs';

/** Highlighted code and the viewer of the API have inline styles. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HASHED = /^static\/.*\.[0-9a-f]{8,}\.\w+$/;

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>gateway: documentation</title>
<p>This gateway runs from a clone in which the documentation is not built. Build it with:</p>
<pre>npm run docs:site</pre>
<p>The pages are also in the folder <code>docs</code> of the clone.</p>
</html>
`;

interface PlacedFile {
  readonly bytes: Buffer;
  readonly isZipped: boolean;
  readonly etag: string;
}

/** In a clone, `npm run docs:site` builds it. */
export function hasDocs(): boolean {
  return existsSync(new URL('index.html', site));
}

/**
 * Without a key: the documentation is public. Files are read when they are first requested; texts
 * are kept compressed.
 */
export function serveDocs(rootPath: string, folder: URL = site): Middleware {
  const base = `${rootPath}/docs`;
  const kept = new Map<string, PlacedFile>();
  let names: ReadonlySet<string> | undefined;

  const load = async (name: string): Promise<PlacedFile> => {
    const known = kept.get(name);
    if (known) return known;
    const content = await readFile(new URL(name, folder));
    const placed = isText(name) ? Buffer.from(placeAt(content.toString(), base)) : content;
    const file = {
      bytes: isText(name) ? await promisify(gzip)(placed) : placed,
      isZipped: isText(name),
      etag: createHash('sha256').update(placed).digest('base64url'),
    };
    kept.set(name, file);
    return file;
  };

  return async (ctx, next) => {
    const { path: asked, method } = ctx;
    const isOurs = asked === base || asked.startsWith(`${base}/`);
    if (!isOurs || (method !== 'GET' && method !== 'HEAD')) {
      await next();
      return;
    }
    if (names === undefined || names.size === 0) names = namesIn(folder);
    ctx.set({
      'cache-control': 'no-cache',
      'content-security-policy': POLICY,
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    });
    if (names.size === 0) {
      ctx.status = 404;
      ctx.type = 'text/html';
      ctx.body = NOT_BUILT;
      return;
    }
    if (asked === base) return ctx.redirect(`${base}/`);
    const wanted = asked.slice(base.length + 1);
    const name = [wanted || 'index.html', `${wanted}.html`].find((it) => names!.has(it));
    await send(ctx, name ?? '404.html', await load(name ?? '404.html'));
  };
}

function namesIn(folder: URL): ReadonlySet<string> {
  const place = fileURLToPath(folder);
  if (!existsSync(place)) return new Set();
  const entries = readdirSync(place, { recursive: true, withFileTypes: true });
  return new Set(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        path.relative(place, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'),
      ),
  );
}

async function send(ctx: Context, name: string, file: PlacedFile): Promise<void> {
  ctx.status = name === '404.html' ? 404 : 200;
  ctx.type = path.extname(name);
  if (HASHED.test(name)) ctx.set('cache-control', 'public, max-age=31536000, immutable');
  const zipped = file.isZipped && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  if (file.isZipped) ctx.vary('accept-encoding');
  if (zipped) ctx.set('content-encoding', 'gzip');
  ctx.etag = zipped ? `${file.etag}.gz` : file.etag;
  if (ctx.status === 200 && ctx.fresh) ctx.status = 304;
  else ctx.body = file.isZipped && !zipped ? await promisify(gunzip)(file.bytes) : file.bytes;
}
