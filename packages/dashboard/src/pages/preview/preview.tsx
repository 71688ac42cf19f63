import type { CallOptions, FunctionTestResult } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Badge, Code, Problem } from '../../components/index.js';
import { milliseconds } from '../../format/time.js';
import { PreviewedRoute } from './route.js';

interface Tried {
  readonly outcome: string;
  readonly refusal: object | null;
  readonly duration_ms: number | null;
  readonly log: readonly string[];
}

type OutcomeBadge = readonly [tone: 'ok' | 'warn' | 'bad', words: string];

export function PreviewVerdict({
  preview: { result, error, isCurrent, run },
  outcome,
  children,
}: {
  preview: PreviewState<Tried>;
  outcome: OutcomeBadge | undefined;
  children: ComponentChildren;
}) {
  if (error && isCurrent) return <Problem error={error} retry={run} />;
  if (!result || !outcome) return <p class="muted">Running…</p>;
  const { refusal, duration_ms: ms, log } = result;
  const [tone, words] = outcome;
  return (
    <section class="preview" aria-label="Result" aria-busy={!isCurrent}>
      <p class="preview-verdict" role="status">
        <Badge status={result.outcome} tone={tone} label={words} />
        {!isCurrent && <span class="muted">running again…</span>}
        {isCurrent && ms !== null && (
          <span class="muted number">ran for {milliseconds(Math.max(ms, 1))}</span>
        )}
      </p>
      {refusal && <p class="preview-refusal">{(refusal as { readonly reason: string }).reason}</p>}
      {log.length > 0 && <Code isRaw label="Console" text={log.join('\n')} />}
      {children}
    </section>
  );
}

const OUTCOMES = {
  accepted: ['ok', 'would be accepted'],
  dropped: ['warn', 'would be dropped by the function'],
  quarantined: ['bad', 'would be quarantined'],
} as const;

export function PreviewResult({ preview }: { preview: PreviewState<FunctionTestResult> }) {
  const { outcome, results = [], result_count: total = 0 } = preview.result ?? {};
  return (
    <PreviewVerdict preview={preview} outcome={outcome && OUTCOMES[outcome]}>
      {results.map((it, index) => (
        <Result
          key={index}
          result={it}
          name={total === 1 ? 'Event' : `Event ${index + 1} of ${total}`}
        />
      ))}
      {total > results.length && <p class="muted">Showing the first {results.length}.</p>}
    </PreviewVerdict>
  );
}

type OneResult = FunctionTestResult['results'][number];

function Result({
  result: { payload, refusal, notes, route },
  name,
}: {
  result: OneResult;
  name: string;
}) {
  return (
    <div class="preview-event">
      {refusal && <p class="preview-refusal">{refusal.reason}</p>}
      {notes.length > 0 && <p class="muted">Omitted: {notes.join('; ')}</p>}
      {route && <PreviewedRoute route={route} />}
      <Code label={name} text={JSON.stringify(payload)} />
    </div>
  );
}

const PAUSE_MS = 400;

export interface PreviewState<Result> {
  /** The result of the last finished test, kept during the next. */
  readonly result: Result | undefined;
  readonly error: Error | undefined;
  readonly isCurrent: boolean;
  /** Repeats the test, because an endpoint or subscription may have changed. */
  readonly run: () => void;
}

/** Runs when function or sample changes, debounced. Tests nothing if `test` is undefined. */
export function usePreview<Test, Result>(
  test: Test | undefined,
  attempt: (test: Test, options: CallOptions) => Promise<Result>,
): PreviewState<Result> {
  const key = test && JSON.stringify(test);
  const [state, setState] = useState<{ key?: string; result?: Result; error?: Error }>({});
  const [round, setRound] = useState(0);
  const tried = key === undefined ? undefined : `${round} ${key}`;
  useEffect(() => {
    if (tried === undefined || !test) return undefined;
    const closing = new AbortController();
    const { signal } = closing;
    const timer = setTimeout(() => {
      attempt(test, { signal }).then(
        (result) => signal.aborted || setState({ key: tried, result }),
        (error: unknown) => signal.aborted || setState({ key: tried, error: error as Error }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      closing.abort();
    };
  }, [tried]);
  const { result, error } = state;
  return { result, error, isCurrent: state.key === tried, run: () => setRound((it) => it + 1) };
}
