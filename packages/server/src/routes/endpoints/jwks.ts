import { Router } from '@koa/router';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';
import { liveSecrets } from '@gateway/store/config';

/** While keys overlap, either verifies, so that receivers may keep the old ones for as long. */
const AGE_SECONDS = 300;

/**
 * The public keys of each endpoint, for anyone (https://www.rfc-editor.org/rfc/rfc7517#section-5).
 * Answered from the configuration in memory, so that requests of strangers cost no query. Each
 * endpoint has keys of its own: Standard Webhooks does not sign the recipient, so with a common key
 * one receiver could pass its requests on to another.
 */
export function jwksRouter(
  { root_path: rootPath }: Pick<Config, 'root_path'>,
  projects: Pick<ConfigCache['projects'], 'get'>,
): Router {
  const router = new Router({ prefix: `${rootPath}/api/v1` });
  return router.get('/projects/:project_id/endpoints/:id/jwks.json', (ctx) => {
    const { project_id: projectId = '', id = '' } = ctx.params;
    const endpoint = projects.get(projectId)?.endpoints.get(id);
    if (!endpoint) throw new GatewayError('not_found', { thing: 'endpoint', id });
    const keys = liveSecrets(endpoint.secrets).flatMap(({ id: kid, ed25519 }) =>
      ed25519
        ? {
            kty: 'OKP',
            crv: 'Ed25519',
            x: Buffer.from(ed25519.public_key, 'base64').toString('base64url'),
            kid,
            use: 'sig',
            alg: 'EdDSA',
          }
        : [],
    );
    ctx.set('cache-control', `public, max-age=${AGE_SECONDS}`);
    ctx.set('access-control-allow-origin', '*');
    ctx.type = 'application/jwk-set+json';
    ctx.body = JSON.stringify({ keys });
  });
}
