import { randomUUID } from 'node:crypto';
import {
  settles,
  type Message,
  type Outcome,
  type SourceContext,
  type SourcePlugin,
} from '@gateway/plugin';
import { always, eventually, must, type FindProblem } from '../run/rule.js';
import type { Bench } from '../run/run-rules.js';
import type { SourceRig } from './rig.js';

interface Handed {
  readonly message: Message;
  readonly body: string;
  /** It was handed over after the abort. */
  readonly late: boolean;
  outcome: Outcome | undefined;
  readonly settle: (outcome: Outcome) => void;
}

export interface PluginRunOptions {
  readonly sourceId?: string;
  readonly window?: number;
  readonly workers?: number;
  /** The outcome of a message, or `hold` if the rule settles it later. Default: `accepted`. */
  readonly answer?: (body: string) => Outcome | 'hold';
}

/** A call of the plugin's `run`, as made by an agent, with a record of what the plugin did. */
export class PluginRun {
  readonly handed: Handed[] = [];
  readonly states: { readonly state: string; readonly reason: string | undefined }[] = [];
  readonly lags: { readonly partition: string; readonly messages: number | null }[] = [];
  readonly logged: string[] = [];
  /** Has `error` if `run` rejected. */
  end: { readonly error?: unknown } | undefined;
  readonly over: Promise<void>;
  readonly #abort = new AbortController();
  #answer: NonNullable<PluginRunOptions['answer']>;

  constructor(
    private readonly bench: Bench<SourcePlugin, SourceRig>,
    connection: Record<string, unknown>,
    { answer = () => 'accepted', ...options }: PluginRunOptions,
  ) {
    this.#answer = answer;
    const log = (fields: object, sentence: string) =>
      void this.logged.push(`${JSON.stringify(fields)} ${sentence}`);
    const context: SourceContext = {
      window: 100,
      workers: 1,
      sourceId: randomUUID(),
      settings: bench.rig.settings ?? {},
      ...options,
      signal: this.#abort.signal,
      clientId: `conformance-${randomUUID().slice(0, 8)}`,
      log: { debug: log, info: log, warn: log, error: log },
      report: (state, reason) => void this.states.push({ state, reason }),
      lag: (partition: string, messages: number | null) =>
        void this.lags.push({ partition, messages }),
    };
    this.over = Promise.resolve()
      .then(() => bench.plugin.run(connection, (message) => this.#handle(message), context))
      .then(
        () => void (this.end = {}),
        (error: unknown) => void (this.end = { error }),
      );
  }

  bodies(): string[] {
    return this.handed.map(({ body }) => body);
  }

  held(): Handed[] {
    return this.handed.filter(({ outcome }) => outcome === undefined);
  }

  settle(outcome: Outcome, which: (handed: Handed) => boolean = () => true): void {
    for (const handed of this.held()) if (which(handed)) handed.settle(outcome);
  }

  abort(): void {
    this.#abort.abort();
  }

  /** Settles the remaining messages if an outcome is given. */
  async stop(outcome?: Outcome): Promise<void> {
    this.abort();
    if (outcome) this.settle(outcome);
    must(
      await settles(this.over, this.bench.withinMs),
      `\`run\` has not resolved ${this.bench.withinMs / 1000} s after its signal aborted and every message settled`,
    );
    if (this.end && 'error' in this.end)
      must(false, `\`run\` rejected after its signal aborted: ${String(this.end.error)}`);
  }

  release(): void {
    this.#answer = () => 'later';
    this.abort();
    this.settle('later');
  }

  /** A broken rule is told with how the run ended. */
  until(problem: FindProblem, withinMs = this.bench.withinMs): Promise<void> {
    return eventually(async () => this.#explain(await problem()), withinMs);
  }

  stays(problem: FindProblem): Promise<void> {
    return always(async () => this.#explain(await problem()), this.bench.quietMs);
  }

  untilReading(): Promise<void> {
    const states = () => this.states.map(({ state }) => state);
    return this.until(
      () =>
        states().at(-1) !== 'reading' &&
        `it does not report reading; it reported: ${states().join(', ') || 'nothing'}`,
    );
  }

  untilHanded(count = 1): Promise<void> {
    const handed = () => this.handed.length;
    return this.until(
      () => handed() < count && `${handed()} of ${count} messages were handed over`,
    );
  }

  untilHeld(count = 1): Promise<void> {
    const held = () => this.held().length;
    return this.until(
      () =>
        held() < count &&
        `${held()} messages were handed over while none settled, ${count} were expected`,
    );
  }

  untilRead(count: number, after = '', withinMs = this.bench.withinMs): Promise<void> {
    return this.until(
      () =>
        this.distinct() !== count &&
        `${after}${this.distinct()} of ${count} messages were handed over`,
      withinMs,
    );
  }

  hasAccepted(body: string): boolean {
    return this.handed.some((it) => it.body === body && it.outcome === 'accepted');
  }

  distinct(): number {
    return new Set(this.bodies()).size;
  }

  ended(): string {
    if (!this.end) return '';
    return 'error' in this.end
      ? `; \`run\` rejected: ${String(this.end.error)}`
      : '; `run` had resolved by then';
  }

  #explain(problem: Awaited<ReturnType<FindProblem>>): string | false {
    return problem ? `${problem}${this.ended()}` : false;
  }

  #handle(message: Message): Promise<Outcome> {
    return new Promise((resolve) => {
      const handed: Handed = {
        message,
        body: Buffer.from(message.body).toString(),
        late: this.#abort.signal.aborted,
        outcome: undefined,
        settle: (outcome) => {
          if (handed.outcome !== undefined) return;
          handed.outcome = outcome;
          resolve(outcome);
        },
      };
      this.handed.push(handed);
      const outcome = this.#answer(handed.body);
      // Settle in a later turn of the event loop, as after a commit.
      if (outcome !== 'hold') setImmediate(handed.settle, outcome);
    });
  }
}
