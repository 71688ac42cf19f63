import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { codecRules, metricsRules, sourceRules, tracerRules } from '@gateway/plugin-conformance';

const documented = suite('conformance/documented');

const handbook = fs.readFileSync(
  new URL('../../docs/internals/plugins.md', import.meta.url),
  'utf8',
);

for (const [list, rules] of Object.entries({
  sourceRules,
  codecRules,
  tracerRules,
  metricsRules,
})) {
  documented(
    `the handbook names ${list}, whose rules have a name of their own and a sentence`,
    () => {
      assert.ok(handbook.includes(list));
      assert.is(new Set(rules.map(({ name }) => name)).size, rules.length);
      for (const { name, sentence } of rules) assert.match(sentence, /^[A-Z`].{20,}[.)]$/, name);
    },
  );
}

documented.run();
