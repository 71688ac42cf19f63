import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Context, Middleware } from 'koa';
import { site } from '@gateway/dashboard';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ');

function policyOf(ancestors: readonly string[]): string {
  return `${POLICY}; frame-ancestors ${ancestors.length === 0 ? "'none'" : ancestors.join(' ')}`;
}

const read = new Map<string, Buffer>();

/** Asset names contain a hash of the content, so assets can be cached forever. */
const FOREVER = 'public, max-age=31536000, immutable';

const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

/** The operator's style sheet. If the file cannot be read, the error names the setting. */
function brandOf(file: string): { readonly name: string; readonly css: Buffer } {
  try {
    const css = readFileSync(file);
    const hash = createHash('sha256').update(css).digest('hex').slice(0, 8);
    return { name: `brand-${hash}.css`, css };
  } catch (error) {
    throw new Error(
      `dashboard.stylesheet (GATEWAY_DASHBOARD_STYLESHEET): ${(error as Error).message}. Set it to a readable CSS file, or remove it.`,
      { cause: error },
    );
  }
}

/**
 * Serves the files in `<rootPath>/assets`, and the page for every other path outside the API if the
 * client names HTML in `Accept`; the start page also without `Accept`. A style sheet of the
 * operator is loaded after the others. Other requests, and all if the dashboard is not built, go to
 * the next middleware. Only portal pages can be framed, and only by the origins in
 * `frameAncestors`.
 */
export function serveDashboard(
  rootPath: string,
  frameAncestors: readonly string[],
  stylesheet?: string,
  hasDocs = false,
): Middleware {
  if (!existsSync(new URL('index.html', site))) return (_, next) => next();
  const brand = stylesheet === undefined ? undefined : brandOf(stylesheet);
  const page = readFileSync(new URL('index.html', site), 'utf8')
    .replace(
      '{{brand}}',
      brand ? `<link rel="stylesheet" href="{{root}}/assets/${brand.name}" />` : '',
    )
    .replace('{{docs}}', hasDocs ? 'data-docs' : '')
    .replaceAll('{{root}}', rootPath);
  const etag = `"${createHash('sha256').update(page).digest('base64url')}"`;
  const names = new Set(readdirSync(new URL('assets/', site)));
  if (brand) {
    names.add(brand.name);
    read.set(brand.name, brand.css);
  }
  const assets = `${rootPath}/assets/`;
  const policies = { portal: policyOf(frameAncestors), others: policyOf([]) };

  return (ctx, next) => {
    const { path, method } = ctx;
    if (method !== 'GET' && method !== 'HEAD') return next();
    if (path.startsWith(assets)) {
      const name = path.slice(assets.length);
      return names.has(name) ? sendAsset(ctx, name, names) : next();
    }
    if (!isPage(path, rootPath) || !wantsPage(ctx, rootPath)) return next();
    ctx.status = 200;
    ctx.type = 'text/html';
    ctx.etag = etag;
    ctx.set({
      'cache-control': 'no-cache',
      'content-security-policy': path.startsWith(`${rootPath}/portal/`)
        ? policies.portal
        : policies.others,
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    });
    if (ctx.fresh) ctx.status = 304;
    else ctx.body = page;
    return undefined;
  };
}

/**
 * Only the start page is also for clients that accept anything: other paths belong to routes that
 * are not pages.
 */
function wantsPage(ctx: Context, rootPath: string): boolean {
  const isStart = ctx.path === rootPath || ctx.path === `${rootPath}/`;
  return isStart ? ctx.accepts('html') !== false : /\btext\/html\b/.test(ctx.get('accept'));
}

function isPage(path: string, rootPath: string): boolean {
  if (path === rootPath) return true;
  return (
    path.startsWith(`${rootPath}/`) &&
    !/^\/(api|healthz|metrics)(\/|$)/.test(path.slice(rootPath.length))
  );
}

function sendAsset(ctx: Context, name: string, names: ReadonlySet<string>): void {
  const [encoding, ending] = ENCODINGS.find(
    ([it, end]) => names.has(name + end) && ctx.acceptsEncodings(it) === it,
  ) ?? [undefined, ''];
  const bytes = read.get(name + ending) ?? readFileSync(new URL(`assets/${name}${ending}`, site));
  read.set(name + ending, bytes);
  ctx.status = 200;
  ctx.type = name.slice(name.lastIndexOf('.'));
  ctx.set({
    'cache-control': FOREVER,
    'x-content-type-options': 'nosniff',
    vary: 'accept-encoding',
  });
  if (encoding) ctx.set('content-encoding', encoding);
  ctx.etag = name + ending;
  if (ctx.fresh) ctx.status = 304;
  else ctx.body = bytes;
}
