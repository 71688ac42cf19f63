import { fork } from 'node:child_process';
import { once } from 'node:events';

export interface ReaderOptions {
  readonly connection: Record<string, unknown>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly sourceId: string;
}

/** A reader that settles no message and runs until it is killed. */
export interface KillableReader {
  readonly handed: number;
  readonly end: string | undefined;
  /** Ends the reader as a crash would, so that no more plugin code runs. */
  kill(): Promise<void>;
}

/** Starts a reader that runs a module's plugin in a child process. */
export function readerProcess(module: string, options: ReaderOptions): KillableReader {
  const child = fork(new URL('reader-child.js', import.meta.url), {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    serialization: 'advanced',
  });
  let [handed, said]: [number, string] = [0, ''];
  let end: string | undefined;
  child.on('message', () => handed++);
  child.stderr!.on('data', (text: Buffer) => (said += text.toString()));
  const over = once(child, 'close').then(
    () => (end = `the process of a reader ended: ${said.trim().slice(0, 2000)}`),
  );
  child.send({ module, ...options });
  return {
    get handed() {
      return handed;
    },
    get end() {
      return end;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await over;
    },
  };
}
