import type { ComponentChildren } from 'preact';
import { Badge } from '../../components/data/badge.js';
import { Code } from '../../components/data/code.js';
import { Problem } from '../../components/feedback/problem.js';
import { milliseconds } from '../../format/time.js';
import type { PreviewState } from './use-preview.js';

export interface Tried {
  readonly outcome: string;
  readonly refusal: object | null;
  readonly duration_ms: number | null;
  readonly log: readonly string[];
}

type Outcome = readonly [tone: 'ok' | 'warn' | 'bad', words: string];

/**
 * A function's run: outcome, refusal and console.
 *
 * @param props.children its output
 */
export function PreviewVerdict({
  preview: { result, error, isCurrent, run },
  outcome,
  children,
}: {
  readonly preview: PreviewState<Tried>;
  readonly outcome: Outcome | undefined;
  readonly children: ComponentChildren;
}) {
  if (error && isCurrent) return <Problem error={error} retry={run} />;
  if (!result || !outcome) return <p class="muted">Trying it…</p>;
  const { refusal, duration_ms: ms, log } = result;
  const [tone, words] = outcome;
  return (
    <section class="preview" aria-label="What would become of it" aria-busy={!isCurrent}>
      <p class="preview-verdict" role="status">
        <Badge status={result.outcome} tone={tone} label={words} />
        {!isCurrent && <span class="muted">trying it again…</span>}
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
