import os from 'node:os';

/** Describes this machine in one line, for figures. */
export function machine(): string {
  const cores = os.cpus();
  const memory = `${Math.round(os.totalmem() / 2 ** 30)} GB`;
  return `${os.type()} ${os.release()} ${os.arch()}, ${cores.length} cores (${cores[0]?.model.trim()}), ${memory}; Node ${process.versions.node}`;
}
