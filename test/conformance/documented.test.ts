import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { metricsRules, sourceRules, tracerRules } from '@gateway/plugin-conformance';

const documented = suite('conformance/documented');

const handbook = fs.readFileSync(new URL('../../docs/internals/plugins.md', import.meta.url), 'utf8');

for (const [heading, rules] of Object.entries({
  'The rules of sources': sourceRules,
  'The rules of tracers': tracerRules,
  'The rules of metrics backends': metricsRules,
})) {
  documented(`the handbook lists ${heading.toLowerCase()} as the suite has them`, () => {
    const [, section = ''] = handbook.split(`### ${heading}\n`);
    const rows = [...section.split(/^#/m)[0]!.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)].map(([, name, sentence]) => ({ name, sentence }));
    assert.equal(rows, [...rules]);
  });
  documented(`${heading.toLowerCase()} have names that are theirs alone`, () => {
    assert.is(new Set(rules.map(({ name }) => name)).size, rules.length);
  });
}

documented.run();
