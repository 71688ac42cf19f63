import type { CreateShard, Move, Shard } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { accountApi } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Badge, Table, type TableColumn, type Tone } from '../../components/data.js';
import { Loaded, toast } from '../../components/feedback.js';
import { fieldError, TextField } from '../../components/field.js';
import { ActionButton, ConfirmButton, FormDialog } from '../../components/form.js';
import { Button, Panel } from '../../components/layout.js';
import { count } from '../../format/number.js';
import { capital } from '../../format/text.js';
import { rowTime, span } from '../../format/time.js';
import { MoveProject } from './move-project.js';

type Row = Shard & { readonly uid: string };

const LIVE_MS = 10_000;
const MIB = 2 ** 20;
const TONES: Readonly<Record<Shard['state'], Tone>> = { ready: 'ok', behind: 'warn', away: 'bad' };

/** Shows the shards with their load and state. Adds, drains and removes them, and moves projects. */
export function Shards() {
  const [dialog, setDialog] = useState<'add' | 'move'>();
  const close = () => setDialog(undefined);
  const shards = useResource('instance shards', (signal) => accountApi().shards.list({ signal }), {
    everyMs: LIVE_MS,
  });
  const all = shards.data?.content ?? [];
  return (
    <Panel
      title="Shards"
      actions={
        <span class="page-actions">
          {all.length > 1 && <Button onPress={() => setDialog('move')}>Move project…</Button>}
          <Button onPress={() => setDialog('add')}>Add shard…</Button>
        </span>
      }
    >
      <p class="muted">
        A shard holds the events and deliveries of some projects. A new project gets the shard with
        the fewest events in the last 24 hours.
      </p>
      <Loaded resource={shards}>
        {({ content }) => (
          <Table
            label="Shards"
            columns={columnsOf(shards.refresh)}
            rows={content.map((it) => ({ ...it, uid: it.name }))}
          />
        )}
      </Loaded>
      {dialog === 'add' && <AddShard onDone={shards.refresh} onClose={close} />}
      {dialog === 'move' && <MoveProject shards={all} onDone={shards.refresh} onClose={close} />}
    </Panel>
  );
}

/** Shows how far the move of a project to a shard is. */
function MoveNote({ project_id: id, from, phase, error, ...move }: Move) {
  const { events_left: left, copied_to: at, seconds_left: seconds } = move;
  const parts = [
    phase === 'history' ? `copying ${id} from ${from}` : `${id} is moving from ${from}`,
    left === null ? undefined : `${count(left)} events left`,
    at === null ? undefined : `at ${rowTime(at)}`,
    seconds === null ? undefined : `about ${span(seconds)}`,
    error === null ? undefined : capital(error),
  ];
  return <div class="muted">{parts.filter((it) => it !== undefined).join(', ')}</div>;
}

const columnsOf = (refresh: () => void): readonly TableColumn<Row>[] => [
  { name: 'Shard', cell: ({ name }) => name },
  {
    name: 'State',
    cell: ({ state, reason, is_draining: isDraining }) => (
      <>
        <Badge status={state} tone={TONES[state]} /> {isDraining && <Badge status="draining" />}
        {reason && <span class="muted">{capital(reason)}</span>}
      </>
    ),
  },
  {
    name: 'Database',
    cell: ({ host, port, database, schema }) => (
      <>
        {host}:{port}/{database}
        {schema && <span class="muted"> schema {schema}</span>}
      </>
    ),
  },
  {
    name: 'Projects',
    cell: ({ projects, moves }) => (
      <>
        {projects}
        {moves.map((move) => (
          <MoveNote key={move.project_id} {...move} />
        ))}
      </>
    ),
  },
  { name: 'Events in 24 hours', cell: ({ events_per_day: events }) => events ?? '' },
  {
    name: 'Size',
    cell: ({ bytes }) => (bytes === null ? '' : `${Math.ceil(bytes / MIB)} MiB`),
  },
  {
    name: 'Actions',
    cell: (it) => (
      <span class="row-actions">
        <ActionButton
          label={`${it.is_draining ? 'End draining' : 'Drain'} ${it.name}`}
          work={async () => {
            await accountApi().shards.update(it.name, { is_draining: !it.is_draining });
            refresh();
          }}
        >
          {it.is_draining ? 'End draining' : 'Drain'}
        </ActionButton>
        {it.name !== 'default' && (
          <ConfirmButton
            label="Remove…"
            spoken={`Remove the shard ${it.name}`}
            title={`Remove the shard ${it.name}?`}
            verb="Remove"
            work={async () => {
              await accountApi().shards.delete(it.name);
              toast(`The shard ${it.name} was removed.`);
              refresh();
            }}
          >
            <p>Its tables stay in its database. A shard with projects cannot be removed.</p>
          </ConfirmButton>
        )}
      </span>
    ),
  },
];

const EMPTY = { name: '', host: '', port: '5432', username: '', password: '', database: '' };

function AddShard({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const [values, setValues] = useState({ ...EMPTY, options: '', schema: '' });
  const action = useAction(async () => {
    const shard = await accountApi().shards.create(shardOf(values));
    toast(`The shard ${shard.name} was added.`);
    onDone();
    onClose();
  });
  const field = (name: keyof typeof values, label: string, hint?: string) => (
    <TextField
      label={label}
      {...(hint && { hint })}
      type={name === 'password' ? 'password' : 'text'}
      value={values[name]}
      onChange={(value) => setValues({ ...values, [name]: value })}
      error={fieldError(action.error, ['name', 'schema'].includes(name) ? name : `address.${name}`)}
      isRequired={name === 'name'}
      hasFocus={name === 'name'}
    />
  );
  return (
    <FormDialog title="Add shard" verb="Add shard" action={action} onClose={onClose}>
      {field('name', 'Name', 'Lower-case letters, digits, hyphens and underscores.')}
      {field('host', 'Host', 'Leave it empty for a schema in the database of the settings.')}
      {field('port', 'Port')}
      {field('username', 'User')}
      {field('password', 'Password', 'It is stored encrypted.')}
      {field('database', 'Database')}
      {field('options', 'Connection options', 'As in the setting database.options.')}
      {field('schema', 'Schema', 'It is created if it is missing. Required on Citus.')}
    </FormDialog>
  );
}

/** Returns the shard of the form. Empty fields are omitted. */
export function shardOf({
  name,
  schema,
  host,
  port,
  username,
  database,
  ...optional
}: Readonly<Record<'name' | 'schema' | keyof typeof EMPTY | 'options', string>>): CreateShard {
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== ''));
  return {
    name: name.trim(),
    ...(schema !== '' && { schema: schema.trim() }),
    ...(host !== '' && {
      address: { host: host.trim(), port: Number(port), username, database, ...given },
    }),
  };
}
