// @ts-check
// https://nodejs.org/docs/latest-v20.x/api/module.html#hooks
import fs from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compiledOf, tests } from './compiled.mjs';

const base = `${pathToFileURL(tests).href}/`;

/**
 * TypeScript is imported by the name of the JavaScript it becomes.
 * @type {import('node:module').ResolveHook}
 */
export async function resolve(specifier, context, nextResolve) {
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.startsWith(base)) {
    const url = new URL(`${specifier.slice(0, -'.js'.length)}.ts`, context.parentURL);
    if (fs.existsSync(url)) return { url: url.href, format: 'module', shortCircuit: true };
  }
  return nextResolve(specifier, context);
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, nextLoad) {
  if (!url.startsWith(base) || !url.endsWith('.ts')) return nextLoad(url, context);
  return { format: 'module', source: fs.readFileSync(compiledOf(fileURLToPath(url)), 'utf8'), shortCircuit: true };
}
