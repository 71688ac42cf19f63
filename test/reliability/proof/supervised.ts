import fs from 'node:fs';
import path from 'node:path';
import { gateway, type GatewayProcess } from '../../support/gateway.js';
import { until } from '../../support/until.js';

/** A command of the gateway that is meant to run, as a service manager keeps it: what ends by itself is started again. */
export interface Supervised {
  readonly name: string;
  /** Pids of all that ran so far under this name. */
  readonly pids: readonly number[];
  start(): void;
  kill(): Promise<void>;
  /** Ends it by SIGTERM, and waits. */
  stop(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Waits until the present process, or the next, has said that it is ready. */
  ready(): Promise<void>;
}

export interface SupervisedOptions {
  readonly args: readonly string[];
  /** The folder it runs in, with its `gateway.json`. */
  readonly folder: string;
  readonly bin?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Where the output of each process is kept as a file. */
  readonly logs: string;
  /** How long a drain may take. */
  readonly drainMs: number;
  /** Is told of what has stopped a process in the middle of its work, and when that began. */
  readonly onBroken: (pid: number, kind: 'kill' | 'freeze', atMs: number) => void;
  /** Is told of a process that was ready and ended though nobody asked for it. */
  readonly onUnexpectedExit: (sentence: string) => void;
}

/** How long a process that ended by itself stays away. */
const RESTART_MS = 300;
/** What an agent says that leaves attempts unwritten, because its time was over. Its own word: that a drain seemed long says more of the machine. */
const CUT_OFF = ['"The drain takes too long', '"Closing took too long'];
const READY = '"Ready."';

/** @param name `agent-1`; it does not run before `start` */
export function supervised(name: string, options: SupervisedOptions): Supervised {
  let running: GatewayProcess | undefined;
  let restart: NodeJS.Timeout | undefined;
  const pids: number[] = [];
  const isReady = (process: GatewayProcess) => process.stdout.includes(READY) || process.stderr.includes(READY);

  const start = () => {
    clearTimeout(restart);
    const process = gateway(options.args, {
      folder: options.folder,
      ...(options.bin ? { bin: options.bin } : {}),
      ...(options.env ? { env: options.env } : {}),
    });
    running = process;
    pids.push(process.pid);
    void process.ended.then(({ code, signal }) => {
      fs.writeFileSync(path.join(options.logs, `${name}-${process.pid}.log`), process.stdout + process.stderr);
      if (running !== process) return;
      // To find a service away at the start, and to say so and end, is allowed; to end later is not.
      if (isReady(process)) options.onUnexpectedExit(`${name} (pid ${process.pid}) ended by itself with ${code ?? signal}`);
      restart = setTimeout(start, RESTART_MS);
    });
  };
  /** From now on its end is no surprise. */
  const release = () => {
    clearTimeout(restart);
    const process = running;
    running = undefined;
    return process;
  };

  return {
    name,
    pids,
    start,
    kill: async () => {
      const process = release();
      if (!process) return;
      const atMs = Date.now();
      await kill(process);
      options.onBroken(process.pid, 'kill', atMs);
    },
    stop: async () => {
      const stopped = release();
      if (!stopped) return;
      const atMs = Date.now();
      const ending = await stopped.terminate({ withinMs: options.drainMs + 30_000 }).catch(() => undefined);
      if (!ending) await kill(stopped);
      const wasCutOff = CUT_OFF.some((sentence) => (stopped.stdout + stopped.stderr).includes(sentence));
      if (ending?.code !== 0 || wasCutOff) options.onBroken(stopped.pid, 'kill', atMs);
    },
    freeze: () => {
      const atMs = Date.now();
      if (running && signal(running.pid, 'SIGSTOP')) options.onBroken(running.pid, 'freeze', atMs);
    },
    thaw: () => {
      if (running) signal(running.pid, 'SIGCONT');
    },
    ready: async () => {
      await until(`${name} to be ready`, () => running && isReady(running), { withinMs: 120_000, everyMs: 50 });
    },
  };
}

/** SIGKILL, and waits for the end. Nothing survives it, but when this process has stood still the news of that are late. */
async function kill(running: GatewayProcess): Promise<void> {
  await running.kill().catch(() => running.ended);
}

/** False when the process has ended by itself and its successor is not there yet. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
