import { settles, type Message, type SourcePlugin } from '@gateway/plugin';
import { eventually, must, type Rule } from '../run/rule.js';
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

/**
 * The multiple of `withinMs` after which `check` has taken too long: the contract's ten seconds,
 * which is the default of `withinMs`, plus a margin for slow machines.
 */
const CHECK_SHARE = 1.05;
/** The share of `withinMs` to wait for the remaining runs to end. */
const CLEANUP_SHARE = 0.5;

/** The context for testing a source rule. `close` ends the remaining runs. */
export class SourceBench extends Bench<SourcePlugin, SourceRig> {
  readonly settings = this.rig.settings ?? {};
  readonly isTopic = this.rig.shape === 'topic';
  readonly #runs: PluginRun[] = [];

  /** Opens a queue or topic and sends the messages to it. `partitions` applies only to topics. */
  async open({ partitions = 1, messages = [] }: PlaceOptions = {}): Promise<Place> {
    const place = await this.rig.open({ partitions: this.isTopic ? partitions : 1 });
    if (messages.length > 0) await place.send(messages);
    return place;
  }

  /**
   * Opens a queue or topic on a broker that can be cut off, and sends the messages to it. Restores
   * the broker when the rule ends.
   */
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

  /** Returns messages for the second partition of a topic, or for a queue, which has only one. */
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

  /** Starts a reader, which is killed when the rule ends, if not before. */
  async openReader(connection: Connection, sourceId: string): Promise<KillableReader> {
    const options = { connection, settings: this.settings, sourceId };
    const { reader = '' } = this.rig;
    const opened =
      typeof reader === 'string' ? readerProcess(reader, options) : await reader(options);
    this.cleanup(() => opened.kill());
    return opened;
  }

  async readOne(headers: SentMessage['headers'] = {}): Promise<Message> {
    const { run } = await this.start({ messages: [{ ...texts(['one'])[0]!, headers }] });
    await run.untilHanded();
    return run.handed[0]!.message;
  }

  /**
   * Calls the plugin's `check`.
   * @throws `Broken` if it takes longer than the contract allows
   */
  async check(
    connection: Connection,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<void> {
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

/** Returns `count` consecutive numbers from `first`, as text. */
export function numbers(count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, at) => String(first + at));
}
