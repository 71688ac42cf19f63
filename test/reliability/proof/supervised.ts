import fs from 'node:fs';
import path from 'node:path';
import { gateway, type GatewayProcess } from '../../support/gateway.js';
import { until } from '../../support/until.js';

/** A gateway command under a service manager: a process that exits is restarted. */
export interface Supervised {
  readonly name: string;
  /** Pids of all processes under this name. */
  readonly pids: readonly number[];
  start(): void;
  kill(): Promise<void>;
  /** Sends SIGTERM and waits. */
  stop(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Waits until the current process, or its successor, reports that it is ready. */
  ready(): Promise<void>;
}

export interface SupervisedOptions {
  readonly args: readonly string[];
  /** The working folder, with its `gateway.json`. */
  readonly folder: string;
  readonly bin?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly logs: string;
  /** The limit of a drain. */
  readonly drainMs: number;
  /**
   * Called when a process was interrupted in the middle of its work, with the time before the
   * signal.
   */
  readonly onBroken: (pid: number, kind: 'kill' | 'freeze', atMs: number) => void;
  /** Called when a ready process has exited unexpectedly. */
  readonly onUnexpectedExit: (sentence: string) => void;
}

/** By then every service that a process needs at its start is back. */
const READY_MS = 600_000;
/** The delay before a restart. */
const RESTART_MS = 300;
/**
 * An agent's log messages when it leaves attempts unrecorded because its drain timed out. The
 * messages are decisive: a slow drain can be due to the machine.
 */
const CUT_OFF = ['"Draining took too long', '"Shutdown timed out'];
const READY = '"Ready."';

/** @param name `agent-1`; it does not run before `start` */
export function supervised(name: string, options: SupervisedOptions): Supervised {
  let running: GatewayProcess | undefined;
  let restart: NodeJS.Timeout | undefined;
  const pids: number[] = [];
  const isReady = (process: GatewayProcess) =>
    process.stdout.includes(READY) || process.stderr.includes(READY);

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
      fs.writeFileSync(
        path.join(options.logs, `${name}-${process.pid}.log`),
        process.stdout + process.stderr,
      );
      if (running !== process) return;
      // A process may exit if a service is unreachable at its start; not later.
      if (isReady(process))
        options.onUnexpectedExit(
          `${name} (pid ${process.pid}) ended by itself with ${code ?? signal}`,
        );
      restart = setTimeout(start, RESTART_MS);
    });
  };
  /** Marks the exit as expected. */
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
      const ending = await stopped
        .terminate({ withinMs: options.drainMs + 30_000 })
        .catch(() => undefined);
      if (!ending) await kill(stopped);
      const wasCutOff = CUT_OFF.some((sentence) =>
        (stopped.stdout + stopped.stderr).includes(sentence),
      );
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
      await until(`${name} to be ready`, () => running && isReady(running), {
        withinMs: READY_MS,
        everyMs: 50,
      });
    },
  };
}

/** Sends SIGKILL and waits for the exit. If this process was blocked, the exit is reported late. */
async function kill(running: GatewayProcess): Promise<void> {
  await running.kill().catch(() => running.ended);
}

/** False if the process has exited and its successor is not running yet. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
