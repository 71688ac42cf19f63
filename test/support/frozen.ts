import { processes } from './processes.js';

/**
 * Stops a process and its descendants, like a machine that hangs: connections remain open and
 * nothing answers.
 *
 * @returns resumes them, or sends them another signal
 */
export function freeze(pid: number): (signal?: NodeJS.Signals) => void {
  const family = [pid];
  // Parents first, so that no new child appears meanwhile.
  process.kill(pid, 'SIGSTOP');
  for (let k = 0; k < family.length; k++) {
    for (const [child, { parent }] of processes()) if (parent === family[k]) family.push(child);
  }
  const signalAll = (signal: NodeJS.Signals) => {
    for (const one of family) {
      try {
        process.kill(one, signal);
      } catch {
        // The process has ended.
      }
    }
  };
  signalAll('SIGSTOP');
  return (signal = 'SIGCONT') => signalAll(signal);
}
