import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { site } from '@gateway/dashboard';

const bundle = suite('dashboard/bundle');

const KB = 1_000;
const assets = new URL('assets/', site);
const names = readdirSync(assets).filter((name) => name.endsWith('.js'));
const text = (name: string) => readFileSync(new URL(name, assets), 'utf8');
const compressed = (name: string) => {
  const file = new URL(`${name}.br`, assets);
  return statSync(existsSync(file) ? file : new URL(name, assets)).size;
};

function withImports(name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const [, next = ''] of text(name).matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g))
    withImports(next, seen);
  return seen;
}

const main = names.find((name) => name.startsWith('main-')) ?? '';
/** Pages: the dynamically imported files. */
const pages = names.filter((name) =>
  names.some((from) => text(from).includes(`import("./${name}")`)),
);

bundle('the first load of any page is less than 150 KB of compressed JavaScript', () => {
  assert.ok(pages.length > 0);
  const sizes = pages.map((page) => {
    const files = new Set([...withImports(main), ...withImports(page)]);
    return [page, [...files].reduce((sum, name) => sum + compressed(name), 0)] as const;
  });
  assert.equal(
    sizes
      .filter(([, size]) => size > 150 * KB)
      .map(([page, size]) => `${page}: ${Math.round(size / KB)} KB`),
    [],
  );
});

bundle('pages are files of their own, and none is loaded before it is shown', () => {
  const first = withImports(main);
  assert.equal(
    pages.filter((page) => first.has(page)),
    [],
  );
});

bundle('no file evaluates text as code or names another host', () => {
  const hosts = (name: string) =>
    [...text(name).matchAll(/https?:\/\/([a-z0-9.-]+)/gi)]
      .map(([, host]) => host)
      .filter(
        (host) =>
          !/^(\.|localhost|www\.w3\.org|www\.standardwebhooks\.com|127\.0\.0\.1|.*\.?example\.com)$/.test(
            host ?? '',
          ),
      );
  assert.equal(
    names
      .filter((name) => /\beval\(|new Function\(/.test(text(name)) || hosts(name).length > 0)
      .map((name) => `${name} ${hosts(name)}`),
    [],
  );
});

bundle('the licences of what is bundled come with it', () => {
  const licences = readFileSync(new URL('licences.txt', assets), 'utf8');
  assert.match(licences, /^preact \d/m);
  assert.match(licences, /^@preact\/signals \d/m);
});

bundle.run();
