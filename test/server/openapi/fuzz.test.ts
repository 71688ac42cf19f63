// deadline: 150 s, long
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { own } from '../../support/services.js';
import { discard, tempFolder } from '../../support/start/keep.js';
import { makeProject, startApi } from '../api.js';

const fuzz = suite('server/openapi/fuzz');
const SECONDS = 30;

fuzz(
  'requests made from the document find no 5xx, and no answer that it does not describe',
  async () => {
    const python = await own.python('schemathesis==4.32.5');
    const api = await startApi({ file: { api_rate_limit: 0 } });
    const folder = tempFolder('fuzz');
    try {
      const { id } = await makeProject(api);
      fs.writeFileSync(
        path.join(folder, 'schemathesis.toml'),
        `[parameters]\n"path.project_id" = "${id}"\n`,
      );
      const checks = [
        'not_a_server_error',
        'status_code_conformance',
        'content_type_conformance',
        'response_schema_conformance',
      ];
      const { code, output } = await run(
        python,
        [
          ...[
            '-m',
            'schemathesis.cli',
            'run',
            `${api.url}/api/v1/openapi.json`,
            '--header',
            `Authorization: Bearer ${api.owner.api_key.key}`,
          ],
          // Deleting the project would turn all later responses into 404.
          ...['--exclude-operation-id', 'projectsDelete'],
          ...[
            '--checks',
            checks.join(','),
            '--seed',
            '1',
            '--max-time',
            String(SECONDS),
            '--no-color',
            '--continue-on-failure',
          ],
        ],
        folder,
      );
      assert.is(code, 0, output);
      assert.match(output, /\d{3,} generated, \d{3,} passed/, output);
    } finally {
      await api.close();
      discard(folder);
    }
  },
);

function run(
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, maxBuffer: 64e6 }, (error, out, err) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, output: out + err }),
    );
  });
}

fuzz.run();
