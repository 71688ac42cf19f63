import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';

const completion = suite('cli/commands/completion');

completion(
  'without a shell, or for one that is not known, it is wrong use and lists the shells',
  async () => {
    const missing = await runGateway(['completion']);
    assert.equal(
      [missing.code, missing.stdout, missing.stderr],
      [
        2,
        '',
        'error: gateway completion needs a shell\nfix:   give one of bash, zsh, fish, powershell\n',
      ],
    );
    const unknown = await runGateway(['completion', 'bsh']);
    assert.equal([unknown.code, unknown.stdout], [2, '']);
    assert.match(
      unknown.stderr,
      'error: the shell must be one of bash, zsh, fish, powershell, not "bsh"; did you mean bash?',
    );
  },
);

completion.run();
