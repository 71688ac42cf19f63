import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { Router } from '@koa/router';
import { site } from '@gateway/dashboard';
import type { Route } from '../api/route.js';
import { VERSION } from '@gateway/core/process';
import { openApiDocument } from './document.js';

/** Only content from this server, and the inline styles that the viewer sets. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gateway: management API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="viewer"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</html>
`;
// `validatorUrl` prevents the viewer from sending the document to its vendor's server.
const START = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#viewer', deepLinking: true, validatorUrl: null, docExpansion: 'none' });
`;

interface File {
  readonly type: string;
  readonly content: () => string | Buffer;
}

/** Needs no key: the pages reveal only the instance's version. */
export function documentRouter(
  routes: readonly Route[],
  options: { readonly rootPath: string; readonly hasBasic: boolean },
): Router {
  const router = new Router({ prefix: `${options.rootPath}/api/v1` });
  const asset = (name: string, type: string): [string, File] => [
    `/docs/${name}`,
    { type, content: () => fs.readFileSync(new URL(`viewer/${name}`, site)) },
  ];
  const files: readonly [string, File][] = [
    [
      '/openapi.json',
      {
        type: 'application/json',
        content: () =>
          JSON.stringify(openApiDocument(routes, { version: VERSION, ...options }), null, 2),
      },
    ],
    ['/docs', { type: 'text/html', content: () => PAGE }],
    ['/docs/start.js', { type: 'text/javascript', content: () => START }],
    asset('swagger-ui.css', 'text/css'),
    asset('swagger-ui-bundle.js', 'text/javascript'),
  ];
  for (const [place, { type, content }] of files) {
    let made: { readonly body: string | Buffer; readonly etag: string } | undefined;
    router.get(place, (ctx) => {
      if (!made) {
        const body = content();
        made = { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
      }
      ctx.set('cache-control', 'no-cache');
      ctx.set('content-security-policy', POLICY);
      ctx.etag = made.etag;
      ctx.status = 200;
      ctx.type = type;
      if (ctx.fresh) ctx.status = 304;
      else ctx.body = made.body;
    });
  }
  return router;
}
