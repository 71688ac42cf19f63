import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { didYouMean, nearest } from '#core/errors/suggest';

const suggest = suite('core/errors/suggest');
const commands = ['agent', 'bootstrap', 'config', 'server', 'version'];

suggest('one slip of the finger is recognised', () => {
  const slips = {
    agnet: 'agent',
    agen: 'agent',
    sserver: 'server',
    configg: 'config',
    VERSION: 'version',
    bootsrap: 'bootstrap',
  };
  for (const [typed, meant] of Object.entries(slips))
    assert.is(nearest(typed, commands), meant, typed);
});

suggest('what is far from everything is left alone', () => {
  for (const typed of ['', 'x', 'deliveries', 'ls'])
    assert.is(nearest(typed, commands), undefined, typed);
  assert.is(didYouMean('deliveries', commands), '');
});

suggest('the nearest wins, and it becomes the end of a sentence', () => {
  assert.is(didYouMean('kv.prot', ['kv.host', 'kv.port', 'kv.type']), '; did you mean kv.port?');
});

suggest('a word of a megabyte is compared with nothing', () => {
  const startedMs = performance.now();
  assert.is(nearest('a'.repeat(1_200_000), commands), undefined);
  assert.ok(performance.now() - startedMs < 50);
});

suggest.run();
