import { settles, type SourcePlugin } from '@gateway/plugin';
import { randomUUID } from 'node:crypto';
import { eventually, must, type FindProblem, type Rule } from '../run/rule.js';
import { Bench } from '../run/run-rules.js';
import { PluginRun, type PluginRunOptions } from './plugin-run.js';
import { readerProcess, type KillableReader } from './reader-process.js';
import type { BreakablePlace, Place, SentMessage, SourceRig } from './rig.js';

export type SourceRule = Rule<SourceRig, SourceBench>;
type Connection = Place['connection'];

interface PlaceOptions {
  readonly partitions?: number | undefined;
  readonly messages?: readonly SentMessage[] | undefined;
}

/** The contract's ten seconds, the default of `withinMs`, plus a margin for slow machines. */
const CHECK_SHARE = 1.05;
const CLEANUP_SHARE = 0.5;

export class SourceBench extends Bench<SourcePlugin, SourceRig> {
  readonly settings = this.rig.settings ?? {};
  readonly isTopic = this.rig.shape === 'topic';
  readonly #runs: PluginRun[] = [];

  async open({ partitions = 1, messages = [] }: PlaceOptions = {}): Promise<Place> {
    const place = await this.rig.open({ partitions: this.isTopic ? partitions : 1 });
    if (messages.length > 0) await place.send(messages);
    return place;
  }

  /** Restores the broker when the rule ends. */
  async openBreakable(messages: readonly SentMessage[]): Promise<BreakablePlace> {
    const place = await this.rig.openBreakable!();
    let isCut = false;
    const cut = () => ((isCut = true), place.cut());
    const heal = () => ((isCut = false), place.heal());
    this.cleanup(() => isCut && heal());
    await place.send(messages);
    return {
      connection: place.connection,
      send: (more) => place.send(more),
      unacknowledged: () => place.unacknowledged(),
      cut,
      heal,
    };
  }

  /** In a topic, in its second partition. */
  second(bodies: readonly string[]): SentMessage[] {
    return texts(bodies, this.isTopic ? 1 : 0);
  }

  spread(): SentMessage[] {
    return [...texts(numbers(20)), ...this.second(numbers(20, 20))];
  }

  run(connection: Connection, options: PluginRunOptions = {}): PluginRun {
    const run = new PluginRun(this, connection, options);
    this.#runs.push(run);
    return run;
  }

  async start(options: PlaceOptions & PluginRunOptions = {}) {
    const { partitions, messages, ...runOptions } = options;
    const place = await this.open({ partitions, messages });
    return { place, run: this.run(place.connection, runOptions) };
  }

  /** Starts a run that settles no message, and waits until it has received `count` messages. */
  async hold(bodies = ['one'], count = bodies.length, options: PluginRunOptions = {}) {
    const started = await this.start({ messages: texts(bodies), answer: () => 'hold', ...options });
    await started.run.untilHeld(count);
    return started;
  }

  async openReader(connection: Connection, sourceId: string): Promise<KillableReader> {
    const options = { connection, settings: this.settings, sourceId };
    const { reader = '' } = this.rig;
    const opened =
      typeof reader === 'string' ? readerProcess(reader, options) : await reader(options);
    this.cleanup(() => opened.kill());
    return opened;
  }

  /** Runs `watch`, if the plugin has it, until there is no problem with the lags that it reports. */
  async watch(
    connection: Connection,
    problem: (lags: ReadonlyMap<string, number | null>) => Awaited<ReturnType<FindProblem>>,
  ): Promise<void> {
    const { plugin, settings, withinMs } = this;
    if (!plugin.watch) return;
    const abort = new AbortController();
    const lags = new Map<string, number | null>();
    const none = () => {};
    const watched = plugin.watch(connection, {
      settings,
      sourceId: randomUUID(),
      signal: abort.signal,
      clientId: `conformance-${randomUUID().slice(0, 8)}`,
      log: { debug: none, info: none, warn: none, error: none },
      lag: (partition, messages) => void lags.set(partition, messages),
      advise: none,
    });
    watched.catch(none);
    try {
      await eventually(() => problem(lags), withinMs);
    } finally {
      abort.abort();
      must(
        await settles(watched, withinMs),
        `\`watch\` has not resolved ${withinMs / 1000} s after its signal aborted`,
      );
    }
    await watched;
  }

  async check(connection: Connection): Promise<void> {
    const { signal } = new AbortController();
    const checked = Promise.resolve().then(() =>
      this.plugin.check(connection, { settings: this.settings, signal }),
    );
    must(
      await settles(checked, this.withinMs * CHECK_SHARE),
      `\`check\` has not settled after ${this.withinMs / 1000} s`,
    );
    await checked;
  }

  async untilUnacknowledged(place: Place, count: number): Promise<void> {
    await eventually(async () => {
      const counted = await place.unacknowledged();
      return (
        counted !== count &&
        `the broker has ${counted} unacknowledged messages, ${count} were expected`
      );
    }, this.withinMs);
  }

  override async close(): Promise<void> {
    await super.close();
    for (const run of this.#runs) run.release();
    await settles(Promise.all(this.#runs.map(({ over }) => over)), this.withinMs * CLEANUP_SHARE);
  }
}

export function texts(bodies: readonly string[], partition = 0): SentMessage[] {
  return bodies.map((body) => ({ body: Buffer.from(body), headers: {}, partition }));
}

export function numbers(count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, at) => String(first + at));
}
