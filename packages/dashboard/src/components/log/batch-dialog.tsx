import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { changes, type ReadOptions } from '../../api/read.js';
import { count } from '../../format/number.js';
import { Problem, Progress } from '../feedback.js';
import { Dialog } from '../form.js';
import { Button } from '../layout.js';

/** The functions receive formatted counts. */
interface BatchWords {
  /** In the plural, as shown after their count, such as `deliveries that failed, last hour`. */
  readonly what: string;
  /** Replaces `what` while rows are counted. */
  readonly counting?: string;
  /** The button text, such as `Resend 12`. */
  readonly action: (count: string) => string;
  /** Without a full stop, such as `12 queued`. */
  readonly done: (count: string) => string;
  /** Shown after the number of rows waiting for their endpoint. */
  readonly held?: string;
  /** Shown after the number of skipped rows. */
  readonly left?: string;
}

/**
 * @param props.label such as `Resend…`
 * @param props.begin fixes the selection of rows when the dialog opens
 */
export function BatchButton({
  label,
  begin,
  ...dialog
}: Pick<Parameters<typeof BatchDialog>[0], 'title' | 'words' | 'note'> & {
  label: string;
  begin: () => RunStep;
}) {
  const [step, setStep] = useState<RunStep>();
  const close = () => {
    setStep(undefined);
    changes.value++;
  };
  return (
    <>
      <Button onPress={() => setStep(begin)}>{label}</Button>
      {step && <BatchDialog {...dialog} step={step} onClose={close} />}
    </>
  );
}

function BatchDialog({
  title,
  words: { what, counting = what, action, done: doneWords, held, left },
  note,
  step,
  onClose,
}: {
  title: string;
  words: BatchWords;
  note?: ComponentChildren;
  step: RunStep;
  onClose: () => void;
}) {
  const { phase, found, done, error, start, stop } = useBatch(step);
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        phase === 'running' ? (
          <Button onPress={stop}>Stop</Button>
        ) : (
          <>
            <Button onPress={onClose}>
              {phase === 'done' || phase === 'stopped' ? 'Close' : 'Cancel'}
            </Button>
            {phase === 'counted' && found.count > 0 && (
              <Button kind="main" onPress={start}>
                {action(count(found.count))}
              </Button>
            )}
          </>
        )
      }
    >
      {error && <Problem error={error} />}
      <div class="batch" role="status">
        {phase === 'counting' && (
          <p>
            Counting {counting}: {count(found.count)} so far…
          </p>
        )}
        {phase === 'counted' && (
          <p>
            {found.count === 0 ? 'There are no' : count(found.count)} {what}.
          </p>
        )}
        {phase === 'counted' && found.held > 0 && (
          <p>
            {count(found.held)} {held}
          </p>
        )}
        {phase === 'counted' && found.left > 0 && (
          <p>
            {count(found.left)} {left}
          </p>
        )}
        {(phase === 'done' || phase === 'stopped') && !error && (
          <p>
            {doneWords(count(done))}
            {phase === 'stopped' && ', then stopped'}.
          </p>
        )}
        {phase !== 'counting' && phase !== 'running' && note}
      </div>
      {phase === 'running' && (
        <Progress label={title} value={found.count === 0 ? 0 : done / found.count} />
      )}
    </Dialog>
  );
}

/** The result of one request, which processes rows for some seconds. Omitted counts are 0. */
interface BatchStep {
  readonly count: number;
  readonly left?: number;
  readonly held?: number;
  readonly next: string | null;
}

type RunStep = (
  step: { dry_run: boolean; after?: string },
  options: ReadOptions,
) => Promise<BatchStep>;

const NOTHING = { count: 0, left: 0, held: 0 };

interface BatchState {
  readonly phase: 'counting' | 'counted' | 'running' | 'stopped' | 'done';
  readonly found: typeof NOTHING;
  readonly done: number;
  readonly error?: Error | undefined;
}

function useBatch(step: RunStep) {
  const [state, setState] = useState<BatchState>({ phase: 'counting', found: NOTHING, done: 0 });
  const update = (change: Partial<BatchState>) => setState((it) => ({ ...it, ...change }));
  const closing = useRef(new AbortController());

  const run = async (isDry: boolean): Promise<void> => {
    const { signal } = (closing.current = new AbortController());
    let sum = NOTHING;
    try {
      for (let after: string | null | undefined; after !== null && !signal.aborted;) {
        const it = await step({ dry_run: isDry, ...(after && { after }) }, { signal });
        sum = {
          count: sum.count + it.count,
          left: sum.left + (it.left ?? 0),
          held: sum.held + (it.held ?? 0),
        };
        update(isDry ? { found: sum } : { done: sum.count });
        after = it.next;
      }
      update({ phase: signal.aborted ? 'stopped' : isDry ? 'counted' : 'done' });
    } catch (error) {
      update({ phase: 'stopped', error: signal.aborted ? undefined : (error as Error) });
    }
  };

  useEffect(() => {
    void run(true);
    return () => closing.current.abort();
  }, []);

  return {
    ...state,
    start: () => {
      update({ phase: 'running', error: undefined });
      void run(false);
    },
    stop: () => closing.current.abort(),
  };
}
