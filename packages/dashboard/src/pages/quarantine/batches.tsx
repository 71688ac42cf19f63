import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { given } from '../../api/given.js';
import { Button } from '../../components/layout/button.js';
import { may } from '../../session/access.js';
import { BatchDialog } from '../log/batch-dialog.js';
import { closedRange, rangeWords } from '../log/time-range.js';
import type { RunStep } from '../log/use-batch.js';
import { quarantineFilter } from './quarantine-filter.js';
import { reasonOf } from './reasons.js';

/** Replays or discards all quarantined messages that match the log's filters. */
export function QuarantineBatches({ onDone }: { readonly onDone: () => void }) {
  const [open, setOpen] = useState<'replay' | 'discard'>();
  const { code, sourceId, status } = quarantineFilter();
  if (status !== 'quarantined' || !may('member')) return null;
  const close = () => {
    setOpen(undefined);
    onDone();
  };
  const selection = { ...closedRange(), ...given({ code, sourceId }) };
  const filters = [code && `“${reasonOf(code).label}”`, sourceId && 'of this source', rangeWords()];
  const what = `quarantined messages, ${filters.filter(Boolean).join(', ')}`;
  return (
    <>
      <Button onPress={() => setOpen('discard')}>Discard…</Button>
      <Button onPress={() => setOpen('replay')}>Replay…</Button>
      {open === 'replay' && (
        <BatchDialog
          title="Replay quarantined messages"
          words={{
            what: `${what}, can be replayed now`,
            counting: what,
            action: (count) => `Replay ${count}`,
            done: (count) => `Replayed ${count}`,
            held: 'of them are dropped by the function of their source.',
            left: 'more would be refused again, and stay.',
          }}
          step={replayStep(selection)}
          onClose={close}
        />
      )}
      {open === 'discard' && (
        <BatchDialog
          title="Discard quarantined messages"
          words={{
            what,
            action: (count) => `Discard ${count}`,
            done: (count) => `Discarded ${count}`,
          }}
          step={discardStep(selection)}
          onClose={close}
        />
      )}
    </>
  );
}

type Selection = Parameters<ReturnType<typeof api>['quarantine']['batchReplay']>[0];

function replayStep(selection: Selection): RunStep {
  return async (options, signal) => {
    const { replayed, duplicates, dropped, refused, next } = await api().quarantine.batchReplay(
      { ...selection, ...options },
      { signal },
    );
    return { count: replayed + duplicates + dropped, held: dropped, left: refused, next };
  };
}

function discardStep(selection: Selection): RunStep {
  return async (options, signal) => {
    const { count, next } = await api().quarantine.batchDiscard(
      { ...selection, ...options },
      { signal },
    );
    return { count, held: 0, left: 0, next };
  };
}
