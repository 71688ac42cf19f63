import { exec, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { readSecretFile } from '../config/given-value.js';
import { fileReason } from '../errors/connection-errors.js';
import { GatewayError, isGatewayError } from '../errors/errors.js';

export const PASSWORD_COMMAND_MS = 10_000;

export interface GivenPassword {
  readonly password?: string | undefined;
  readonly password_file?: string | undefined;
  readonly password_command?: string | undefined;
}

/** Can change while the process runs. */
export interface ChangingPassword {
  /** Concurrent callers share a run of the command. Rejects with `password_unreadable`. */
  read(): Promise<string>;
  /**
   * For clients that cannot wait. With a command, this is the password of its last run, and starts
   * another run; only the first call waits for it.
   * @throws GatewayError `password_unreadable`
   */
  now(): string;
}

/**
 * Undefined unless a file or command provides the password.
 * @param group `database`, `kv` or `smtp`
 */
export function changingPassword(
  group: string,
  { password_file: file, password_command: command }: GivenPassword,
): ChangingPassword | undefined {
  if (file !== undefined) {
    const now = () => {
      try {
        return readSecretFile(file);
      } catch (error) {
        throw unreadable(`${group}.password_file`, fileReason(error), error);
      }
    };
    return { now, read: async () => now() };
  }
  if (command === undefined) return undefined;
  const failed = (error: unknown) =>
    unreadable(`${group}.password_command`, commandReason(error), error);
  let last: string | undefined;
  let running: Promise<string> | undefined;
  const keep = (output: string) => {
    const password = output.replace(/\r?\n$/, '');
    if (password === '') throw new Error('it printed nothing');
    return (last = password);
  };
  const read = () =>
    (running ??= promisify(exec)(command, { timeout: PASSWORD_COMMAND_MS })
      .then(({ stdout }) => keep(stdout))
      .catch((error: unknown) => {
        throw failed(error);
      })
      .finally(() => (running = undefined)));
  const now = () => {
    if (last !== undefined) {
      read().catch(() => undefined);
      return last;
    }
    try {
      return keep(
        execFileSync('/bin/sh', ['-c', command], {
          encoding: 'utf8',
          timeout: PASSWORD_COMMAND_MS,
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      );
    } catch (error) {
      throw failed(error);
    }
  };
  return { read, now };
}

function unreadable(setting: string, reason: string, cause: unknown): GatewayError {
  return isGatewayError(cause)
    ? cause
    : new GatewayError('password_unreadable', { setting, reason }, { cause });
}

/** The command itself is not quoted, because it may contain a secret. */
function commandReason(error: unknown): string {
  const { killed, code, status, stderr, message } = error as {
    killed?: boolean;
    code?: number | string;
    status?: number;
    stderr?: string;
    message: string;
  };
  if (killed || code === 'ETIMEDOUT')
    return `it did not end within ${PASSWORD_COMMAND_MS / 1000} s`;
  const exit = status ?? code;
  if (typeof exit !== 'number') return message;
  const said = String(stderr ?? '')
    .trim()
    .split('\n')
    .at(-1)!
    .slice(0, 200);
  return `it exited with status ${exit}${said ? `: ${said}` : ''}`;
}
