import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import {
  type Message,
  type Outcome,
  PluginError,
  type SourceContext,
  type SourcePlugin,
} from '@gateway/plugin';
import { connectionValidator } from '#server/http/schema';
import { randomName } from '../support/kafka.js';
import { within } from '../support/until.js';

/** A running source plugin, as in an agent. */
export interface Reading {
  /** Messages in the order of handing over, including unsettled ones. */
  readonly messages: Message[];
  readonly bodies: () => string[];
  /** Reported states, newest last. */
  readonly states: { state: string; reason: string | undefined }[];
  /** The last reported lag of each partition; null once withdrawn. */
  readonly lags: Record<string, number | null>;
  /** Messages that the broker deleted, by partition. */
  readonly lost: [partition: string, messages: number][];
  readonly logs: { level: string; fields: object; sentence: string }[];
  readonly sourceId: string;
  /** Requests another number of readers. */
  resize(workers: number): void;
  /** The last advice of `watch`. */
  readonly advice: () => string | null;
  readonly done: Promise<void>;
  /** Aborts and waits for the end. Returns the duration in milliseconds. */
  stop(): Promise<number>;
}

let runs = 0;
/** Concurrent test files share a broker: with one group they would divide their topics. */
const ownSource = randomName('source');

/** Runs a plugin. Without `handle` every message is accepted immediately. */
export function reading<Connection>(
  plugin: SourcePlugin<Connection>,
  connection: Connection,
  options: Partial<Pick<SourceContext, 'sourceId' | 'window' | 'workers' | 'clientId'>> & {
    handle?: (message: Message) => Promise<Outcome>;
    /** Requests the lag, concurrently through `watch` if the plugin has it. */
    wantsLag?: boolean;
    /** The positions recorded before, to which this run adds. */
    recorded?: Map<string, string>;
    keptSinceMs?: number;
  } = {},
): Reading {
  const abort = new AbortController();
  const messages: Message[] = [];
  const states: Reading['states'] = [];
  const lags: Reading['lags'] = {};
  const logs: Reading['logs'] = [];
  const lost: Reading['lost'] = [];
  const log = (level: string) => (fields: object, sentence: string) =>
    void logs.push({ level, fields, sentence });
  const handle = (message: Message) => {
    messages.push(message);
    return options.handle?.(message) ?? Promise.resolve('accepted' as const);
  };
  let advised: string | null = null;
  let follow: ((workers: number) => void) | undefined;
  const lag = (partition: string, messages: number | null) => void (lags[partition] = messages);
  const shared = {
    settings: {},
    sourceId: options.sourceId ?? ownSource,
    signal: abort.signal,
    // A later process could take over the group members of an ended one: each run is another
    // process to the brokers.
    clientId: options.clientId ?? `gateway-test-${++runs}`,
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  };
  const done = plugin.run(connection, handle, {
    ...shared,
    window: options.window ?? 1000,
    workers: options.workers ?? 1,
    onWorkers: (given) => (follow = given),
    report: (state, reason) => void states.push({ state, reason }),
    lost: (partition, count) => void (count > 0 && lost.push([partition, count])),
    ...(options.wantsLag && !plugin.watch && { lag }),
    ...(options.recorded && {
      readBefore: () =>
        Promise.resolve({
          positions: new Map(options.recorded),
          keptSinceMs: () => options.keptSinceMs ?? -Infinity,
        }),
      record: (name, position) => void options.recorded!.set(name, position),
    }),
  });
  done.catch(() => {});
  const watched =
    options.wantsLag &&
    plugin.watch?.(connection, {
      ...shared,
      workers: options.workers ?? 1,
      lag,
      advise: (advice) => void (advised = advice),
    });
  if (watched) watched.catch(() => {});
  return {
    messages,
    bodies: () => messages.map(bodyOf),
    states,
    lags,
    lost,
    logs,
    sourceId: shared.sourceId,
    resize: (workers) => {
      assert.ok(follow, 'it does not follow the number of readers');
      follow(workers);
    },
    advice: () => advised,
    done,
    stop: async () => {
      const began = Date.now();
      abort.abort();
      await within(Promise.all([done, watched]), 15_000, 'the source to stop');
      return Date.now() - began;
    },
  };
}

export function bodyOf(message: Message): string {
  return Buffer.from(message.body).toString();
}

/** A `handle` with messages that the test settles. */
export function held(): {
  handle: (message: Message) => Promise<Outcome>;
  settle(body: string, outcome: Outcome): void;
  waiting(): string[];
} {
  const open = new Map<string, (outcome: Outcome) => void>();
  return {
    handle: (message) => new Promise((resolve) => open.set(bodyOf(message), resolve)),
    settle: (body, outcome) => {
      const resolve = open.get(body);
      if (!resolve) throw new Error(`${body} was not handed over`);
      open.delete(body);
      resolve(outcome);
    },
    waiting: () => [...open.keys()],
  };
}

export function validator(schema: object): (connection: unknown) => boolean {
  const problemsOf = connectionValidator(schema as Readonly<Record<string, unknown>>, 'connection');
  return (connection) => problemsOf(connection).length === 0;
}

/** Returns the plugin's refusal, which must be a `PluginError` with a fix. */
export async function failure(promise: Promise<unknown>, what = 'it'): Promise<PluginError> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, PluginError, `${what}: ${String(error)}`);
    return error as PluginError;
  }
  throw new Error(`${what} did not fail`);
}

/**
 * A process that runs the plugin: prints `message` for each, accepts or holds them, and stops after
 * some. PID in `clientId` stands for its id.
 */
export function reader(
  name: string,
  connection: object,
  options: { handle?: 'accept' | 'never'; stopAfter?: number; clientId?: string },
): {
  pid: number | undefined;
  exited: Promise<number | null>;
  output(): string;
  kill(signal: NodeJS.Signals): void;
} {
  const script = fileURLToPath(new URL('source-reader.mjs', import.meta.url));
  const child = spawn(
    process.execPath,
    [script, name, JSON.stringify({ connection, ...options })],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return {
    pid: child.pid,
    exited: new Promise((resolve) => child.once('exit', resolve)),
    output: () => output,
    kill: (signal) => void child.kill(signal),
  };
}
