// @ts-check
import path from 'node:path';
import { names as settled } from './names.mjs';

/**
 * Builds the docs site: into `@gateway/docs`, which is packed afterwards, and as static files into
 * `<out>/docs/<version>`, for a server that has `<out>/docs` at `/docs/`.
 * @param {{ root: string, out: string, version: string, names?: typeof settled }} options
 * @returns {Promise<string[]>} the index of the versions
 */
export async function buildDocs({ root, out, version, names = settled }) {
  // Both import built packages.
  const { buildSite } = await import('../site/build.mjs');
  const { placeVersion } = await import('../site/versions.mjs');
  const site = await buildSite({ root, version, names });
  return [placeVersion({ site, out: path.join(out, 'docs'), version, base: '/docs/' })];
}
