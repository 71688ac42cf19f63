import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { namedCommand } from '#cli/app/command-index';
import { failureOf, printed, requireCommand } from '#cli/app/failure';
import { GatewayError } from '#core/errors/errors';

const failure = suite('cli/app/failure');
const context = { command: 'server', flags: ['port', 'config'] };

failure('an error of the table keeps its sentence, fix and status', () => {
  const error = new GatewayError('email_in_use', { email: 'a@b.c' });
  assert.equal(failureOf(error, context), {
    sentence: error.message,
    fix: error.fix,
    exitStatus: 1,
  });
});

failure('an error with a fix of its own keeps both', () => {
  const error = Object.assign(new Error('no such topic'), { fix: 'create it' });
  assert.equal(failureOf(error, context), {
    sentence: 'no such topic',
    fix: 'create it',
    exitStatus: 1,
  });
});

failure('an error that nobody foresaw is a sentence without a stack, status 1', () => {
  const { sentence, fix, exitStatus } = failureOf(new TypeError('x is not a function'), context);
  assert.equal([sentence, exitStatus], ['x is not a function', 1]);
  assert.match(fix, '--log-level=debug');
  assert.is(failureOf(undefined, context).exitStatus, 1);
});

failure(
  'a mistyped command is compared with those of as many words, and what follows is taken for its arguments',
  () => {
    const told = (line: string) => {
      try {
        requireCommand(namedCommand(line.split(' ')));
      } catch (error) {
        return failureOf(error, context);
      }
      return undefined;
    };
    assert.equal(told('plugins instal ./mine'), {
      sentence: 'there is no command plugins instal; did you mean plugins install?',
      fix: 'run `gateway plugins --help` for its commands',
      exitStatus: 2,
    });
    assert.is(
      told('utils quarantine lst')?.sentence,
      'there is no command utils quarantine lst; did you mean utils quarantine list?',
    );
    assert.is(told('plugins x y')?.sentence, 'x y is not an argument of gateway plugins');
    assert.is(told('nonsense')?.sentence, 'there is no command nonsense');
    assert.is(told('--db-host a')?.sentence, 'gateway needs a command');
    assert.is(
      told('utils --json quarantine')?.sentence,
      '--json is before the command, where only global flags are allowed',
    );
    for (const right of [
      'plugins',
      'plugins --json',
      'utils explain x',
      'utils',
      'server --port 1',
    ])
      assert.is(told(right), undefined, right);
  },
);

failure('several lines are printed under one another', () => {
  assert.is(
    printed({ sentence: 'one\ntwo', fix: 'three', exitStatus: 1 }),
    'error: one\n       two\nfix:   three\n',
  );
});

failure.run();
