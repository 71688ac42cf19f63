import { randomUUID } from 'node:crypto';
import type { Message, Outcome, SourceContext, SourcePlugin } from '@gateway/plugin';
import { settles } from '@gateway/plugin';
import { must } from '../run/judge.js';

/** One message that the plugin handed over. */
export interface Handed {
  readonly message: Message;
  /** Its body as text. */
  readonly body: string;
  /** Whether it was handed over after the signal had aborted. */
  readonly late: boolean;
  readonly outcome: Outcome | undefined;
}

export interface RunOptions {
  readonly sourceId?: string;
  readonly window?: number;
  readonly workers?: number;
  /** The outcome of a message, or `hold` when the rule settles it itself; `accepted` without it. Given the body and how many came before. */
  readonly answer?: (body: string, before: number) => Outcome | 'hold';
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Whether somebody wants to know its lag; so it is when this is left out. */
  readonly wantsLag?: boolean;
}

/** A call of the plugin's `run`, as an agent makes it. */
export interface Run {
  /** Everything that was handed over, in that order. */
  readonly handed: readonly Handed[];
  readonly bodies: () => string[];
  /** What is held and unsettled. */
  readonly held: () => Handed[];
  /** The most that was unsettled at a time. */
  readonly most: () => number;
  /** What it reported, newest last. */
  readonly states: readonly { readonly state: string; readonly reason: string | undefined }[];
  /** What it told of its lag, newest last. */
  readonly lags: readonly { readonly partition: string; readonly messages: number | null }[];
  /** Every line of its log, with fields and sentence. */
  readonly logged: readonly string[];
  /** How it ended, or undefined while it reads. */
  readonly end: () => { readonly error?: unknown } | undefined;
  /** Resolves when it has ended, in whichever way. */
  readonly over: Promise<void>;
  /** Settles what is held. */
  settle(outcome: Outcome, which?: (handed: Handed) => boolean): void;
  /** Aborts the signal. */
  abort(): void;
  /** Aborts, and waits for the end. @throws `Broken` when it rejects or takes longer than that */
  stop(withinMs: number): Promise<void>;
  /** Ends it whatever happens: refuses what is held and what still comes. */
  letGo(): void;
}

interface Open {
  message: Message;
  body: string;
  late: boolean;
  outcome: Outcome | undefined;
  resolve(outcome: Outcome): void;
}

/** Calls `run`. What it does is told by the result; this throws nothing. */
export function startRun(
  plugin: SourcePlugin,
  connection: Record<string, unknown>,
  settings: Readonly<Record<string, unknown>>,
  { answer = () => 'accepted', window = 100, workers = 1, wantsLag = true, ...options }: RunOptions = {},
): Run {
  const abort = new AbortController();
  const handed: Open[] = [];
  const states: { state: string; reason: string | undefined }[] = [];
  const lags: { partition: string; messages: number | null }[] = [];
  const logged: string[] = [];
  let [unsettled, most, lettingGo] = [0, 0, false];
  let end: { error?: unknown } | undefined;

  const handle = (message: Message): Promise<Outcome> =>
    new Promise((resolve) => {
      const body = Buffer.from(message.body).toString();
      const open: Open = {
        message,
        body,
        late: abort.signal.aborted,
        outcome: undefined,
        resolve: (outcome) => {
          if (open.outcome !== undefined) return;
          open.outcome = outcome;
          unsettled--;
          resolve(outcome);
        },
      };
      most = Math.max(most, ++unsettled);
      const outcome = lettingGo ? 'later' : answer(body, handed.push(open) - 1);
      // Not in the same turn: the commit that an outcome stands for takes time.
      if (outcome !== 'hold') setImmediate(() => open.resolve(outcome));
    });
  const log = (fields: object, sentence: string) => void logged.push(`${JSON.stringify(fields)} ${sentence}`);
  const context: SourceContext = {
    settings: options.settings ?? settings,
    sourceId: options.sourceId ?? randomUUID(),
    signal: abort.signal,
    window,
    workers,
    clientId: `conformance-${randomUUID().slice(0, 8)}`,
    log: { debug: log, info: log, warn: log, error: log },
    report: (state, reason) => void states.push({ state, reason }),
    ...(wantsLag && { lag: (partition: string, messages: number | null) => void lags.push({ partition, messages }) }),
  };
  const over = Promise.resolve()
    .then(() => plugin.run(connection, handle, context))
    .then(
      () => void (end = {}),
      (error: unknown) => void (end = { error }),
    );
  const held = () => handed.filter(({ outcome }) => outcome === undefined);
  return {
    handed,
    bodies: () => handed.map(({ body }) => body),
    held,
    most: () => most,
    states,
    lags,
    logged,
    end: () => end,
    over,
    settle: (outcome, which = () => true) => {
      for (const open of handed) if (open.outcome === undefined && which(open)) open.resolve(outcome);
    },
    abort: () => abort.abort(),
    stop: async (withinMs) => {
      abort.abort();
      must(
        await settles(over, withinMs),
        `\`run\` has not resolved ${withinMs / 1000} s after its signal aborted and everything had settled`,
      );
      if (end && 'error' in end) must(false, `\`run\` rejected after its signal aborted: ${String(end.error)}`);
    },
    letGo: () => {
      lettingGo = true;
      abort.abort();
      for (const open of handed) open.resolve('later');
    },
  };
}

/** For a reason: how the run has ended, when it has. */
export function endOf({ end }: Run): string {
  const ended = end();
  if (!ended) return '';
  return 'error' in ended ? `; \`run\` rejected: ${String(ended.error)}` : '; `run` had resolved by then';
}
