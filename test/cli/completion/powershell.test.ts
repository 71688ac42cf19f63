import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';

const powershell = suite('cli/completion/powershell');

powershell(
  'the script registers a completer that knows commands, flags and their summaries',
  async () => {
    const { stdout, stderr, code } = await runGateway(['completion', 'powershell']);
    assert.equal([code, stderr], [0, '']);
    assert.match(
      stdout,
      'Register-ArgumentCompleter -Native -CommandName gateway -ScriptBlock $scriptblock',
    );
    for (const word of [
      '"migrate" = @{',
      '"quarantine" = @{',
      '"mode" = @{ "summary" = "Attempts the agent makes',
      '"errtrack-dsn" = @{',
    ])
      assert.match(stdout, word);
    const bare = stdout.replace(/"(?:""|[^"])*"/g, '');
    assert.is(bare.match(/\{/g)?.length, bare.match(/\}/g)?.length, 'every brace is closed');
  },
);

powershell.run();
