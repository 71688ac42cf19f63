// @ts-check
import path from 'node:path';
import { names as settled } from './names.mjs';

/**
 * Builds the docs site into `@gateway/docs`, which is packed afterwards.
 * @param {{ root: string, version: string, names?: typeof settled }} options
 * @returns {Promise<string>} its folder
 */
export async function siteOf({ root, version, names = settled }) {
  // It imports built packages.
  const { buildSite } = await import('../site/build.mjs');
  return buildSite({ root, version, names });
}

/**
 * Builds the docs site as static files into `<out>/docs/<version>`, for a server that has
 * `<out>/docs` at `/docs/`.
 * @param {{ root: string, out: string, version: string, names?: typeof settled }} options
 * @returns {Promise<string[]>} the index of the versions
 */
export async function buildDocs({ out, version, ...of }) {
  const site = await siteOf({ version, ...of });
  const { placeVersion } = await import('../site/versions.mjs');
  return [placeVersion({ site, out: path.join(out, 'docs'), version, base: '/docs/' })];
}
