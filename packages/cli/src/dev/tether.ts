import { spawn } from 'node:child_process';

/**
 * Has a process interrupted (SIGINT) when ours ends in whatever way, `kill -9` among them: a shell waits for the end of its standard input, which
 * we hold, in a session of its own that no Ctrl-C reaches. Windows has no such shell; there the next start finds what was left.
 *
 * @returns what lets go of it: the process has ended, and its pid may soon be somebody else's
 */
export function tether(pid: number): () => void {
  if (process.platform === 'win32') return () => undefined;
  const shell = spawn('/bin/sh', ['-c', 'read -r _; kill -s INT "$1"', 'sh', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    env: {},
  });
  shell.on('error', () => undefined);
  shell.stdin.on('error', () => undefined);
  shell.unref();
  (shell.stdin as typeof shell.stdin & { unref(): void }).unref();
  return () => shell.kill('SIGKILL');
}
