import type { Source, SourceMove } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/index.js';
import {
  Checkbox,
  DialogButton,
  FormDialog,
  Select,
  Table,
  type TableColumns,
  TextField,
  toast,
  useForm,
} from '../../components/index.js';
import { count } from '../../format/number.js';

const PLACES = [
  ['time', 'A time'],
  ['earliest', 'The oldest message'],
  ['latest', 'After the newest message'],
  ['position', 'A position of a partition'],
] as const;

type Moved = SourceMove['partitions'][number];

const columns: TableColumns<Moved> = {
  Partition: ({ partition }) => partition,
  From: { isNumber: true, cell: ({ from }) => from ?? '–' },
  To: { isNumber: true, cell: ({ to }) => to },
  'Read again': { isNumber: true, cell: ({ again }) => count(again) },
  Expired: { isNumber: true, cell: ({ expired }) => count(expired) },
  Skipped: { isNumber: true, cell: ({ skipped }) => count(skipped) },
};

const EMPTY = { place: 'time', time: '', partition: '', position: '', redeliver: false };

function asked({ place, time, partition, position, redeliver }: typeof EMPTY) {
  return {
    redeliver,
    ...(place === 'position'
      ? { positions: { [partition.trim()]: position.trim() } }
      : { to: place === 'time' ? time.trim() : place }),
  };
}

/** The move can be made only once it has been shown what it would do. */
function MoveSource({ source, onClose }: { source: Source; onClose: () => void }) {
  const [shown, setShown] = useState<{ readonly key: string; readonly move: SourceMove }>();
  const form = useForm(EMPTY, async (values) => {
    const body = asked(values);
    const key = JSON.stringify(body);
    const dry_run = shown?.key !== key;
    const move = await api().sources.rewind(source.uid, { ...body, dry_run });
    if (dry_run) return setShown({ key, move });
    toast(
      `Source moved: ${count(move.again)} messages are read again, ${count(move.skipped)} skipped.`,
    );
    onClose();
  });
  const { place, time, partition, position, redeliver } = form.values;
  const planned = shown?.key === JSON.stringify(asked(form.values)) ? shown.move : undefined;
  return (
    <FormDialog
      title="Move source"
      verb={planned ? 'Move source' : 'Show what it would do'}
      isReady={
        place === 'time'
          ? time !== ''
          : place !== 'position' || (partition !== '' && position !== '')
      }
      action={form}
      onClose={onClose}
    >
      <p>
        Agents stop reading for a few seconds. Messages whose events are kept are duplicates, and
        not delivered again.
      </p>
      <Select label="Read from" options={[...PLACES]} {...form.text('place')} />
      {place === 'time' && (
        <TextField
          label="Time"
          hint="Such as 2026-11-21T09:00:00Z. The first message of each partition at or after it."
          {...form.text('time', 'to')}
          isMono
        />
      )}
      {place === 'position' && (
        <>
          <TextField label="Partition" {...form.text('partition', 'positions')} isMono />
          <TextField label="Next position" {...form.text('position')} isMono />
        </>
      )}
      <Checkbox
        label="Deliver expired messages a second time"
        hint="Expired messages were read before, and retention has deleted their events. Otherwise they are passed over."
        isOn={redeliver}
        onChange={form.set('redeliver')}
      />
      {planned && (
        <Table
          label="Partitions"
          rows={planned.partitions}
          columns={columns}
          idOf={({ partition: name }) => name}
        />
      )}
    </FormDialog>
  );
}

export function MoveButton({ source }: { source: Source }) {
  return (
    <DialogButton dialog={(close) => <MoveSource source={source} onClose={close} />}>
      Move…
    </DialogButton>
  );
}
