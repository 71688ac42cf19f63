import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Runs `work` while a process can open no more files or sockets. */
export async function withoutDescriptors(pid: number, work: () => Promise<void>): Promise<void> {
  const options = ['--pid', String(pid), '--nofile', '--output', 'SOFT', '--noheadings'];
  const soft = execFileSync('prlimit', options).toString().trim();
  // Started before, because this process may be the one without descriptors.
  const restore = spawn('sh', ['-c', `read _; exec prlimit --pid ${pid} --nofile=${soft}:`], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const restored = once(restore, 'close');
  try {
    // Its open descriptors have the lowest numbers.
    execFileSync('prlimit', ['--pid', String(pid), '--nofile=10:']);
    await work();
  } finally {
    restore.stdin.end('\n');
    await restored;
  }
}
