import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fillTemplate, isTemplate, templateProblem } from '#core/events/header-template';

const template = suite('core/events/header-template');

const MESSAGE = {
  key: 'o-1',
  partition: 0,
  headers: { 'X-Region': 'eu', 'a.b': 'dotted' },
  attributes: { __proto__: null, n: '\n' },
};

template('parts of the message take their place', () => {
  assert.is(fillTemplate('{{message.key}}/{{ message.partition }}', MESSAGE), 'o-1/0');
  assert.is(fillTemplate('{{ message.headers.x-region }}', MESSAGE), 'eu');
  assert.is(fillTemplate('{{ message.headers.a.b }}', MESSAGE), 'dotted');
});

template('a header is left out if a part is missing or HTTP cannot carry it', () => {
  for (const part of ['topic', 'headers.toString', 'query.x', 'attributes.n'])
    assert.is(fillTemplate(`a {{ message.${part} }}`, MESSAGE), undefined, part);
  const key = 'k'.repeat(4_097);
  assert.is(fillTemplate('{{ message.key }}', { key }), undefined);
});

template('a mistake names what may be written', () => {
  assert.is(isTemplate('plain }}'), false);
  assert.is(templateProblem('a {{ message.key }} b {{message.query.q}}'), undefined);
  assert.match(templateProblem('{{ key }}')!, /^holds \{\{ key \}\}: write \{\{ message\.key/);
  assert.is(templateProblem('{{ message.key }} {{'), 'holds {{ without }}');
});

template.run();
