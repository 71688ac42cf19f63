import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installation, manifestOf } from '../../../core/plugin-packages.js';
import { runGateway } from '../../../support/gateway.js';

const schema = suite('cli/commands/config/schema');

schema('prints what the docs have, with no Postgres and no Redis', async () => {
  const { stdout, stderr, code } = await runGateway([
    'config',
    'schema',
    '--db-port',
    '1',
    '--kv-port',
    '1',
  ]);
  assert.equal([code, stderr], [0, '']);
  const published = new URL('../../../../docs/reference/gateway.schema.json', import.meta.url);
  assert.equal(JSON.parse(stdout), JSON.parse(readFileSync(published, 'utf8')));
});

schema('settings of installed plugins are in it', async () => {
  const { root, close } = installation({
    'some-plugin': {
      gateway: manifestOf({ kind: 'tracer', name: 'mine', settings: './settings.json' }),
      files: {
        'settings.json': JSON.stringify({
          'tracer.mine.rate': { type: 'number', max: 1, summary: 'Share.' },
        }),
      },
    },
  });
  try {
    const { stdout } = await runGateway(['config', 'schema'], {
      env: { GATEWAY_PLUGINS_DIR: root },
    });
    const { properties } = JSON.parse(stdout) as {
      properties: { tracer: { properties: { mine: unknown } } };
    };
    assert.equal(properties.tracer.properties.mine, {
      type: 'object',
      additionalProperties: false,
      properties: { rate: { description: 'Share.', type: 'number', maximum: 1 } },
    });
  } finally {
    close();
  }
});

schema.run();
