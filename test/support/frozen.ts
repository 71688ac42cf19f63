import { processes } from './processes.js';

/**
 * Stops a process and all that it has started, as a machine that hangs: connections stay open and nothing answers.
 *
 * @returns what lets them go on
 */
export function freeze(pid: number): () => void {
  const family = [pid];
  // Those that can start others first, so that none is born meanwhile.
  process.kill(pid, 'SIGSTOP');
  for (let k = 0; k < family.length; k++) {
    for (const [child, { parent }] of processes()) if (parent === family[k]) family.push(child);
  }
  const signalAll = (signal: NodeJS.Signals) => {
    for (const one of family) {
      try {
        process.kill(one, signal);
      } catch {
        // It has ended.
      }
    }
  };
  signalAll('SIGSTOP');
  return () => signalAll('SIGCONT');
}
