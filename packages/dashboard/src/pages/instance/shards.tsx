import type { CreateShard, Move, Shard } from '@gateway/client';
import { accountApi, given, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  type TableColumns,
  ConfirmButton,
  DialogButton,
  FormDialog,
  Loaded,
  Panel,
  Table,
  TextField,
  toast,
  type Tone,
  useForm,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { capital } from '../../format/text.js';
import { rowTime, span } from '../../format/time.js';
import { MoveProject } from './move-project.js';

const LIVE_MS = 10_000;
const MIB = 2 ** 20;
const TONES: Readonly<Record<Shard['state'], Tone>> = { ready: 'ok', behind: 'warn', away: 'bad' };

export function Shards() {
  const shards = useResource(
    'instance shards',
    (options) => accountApi().shards.list(options),
    LIVE_MS,
  );
  const all = shards.data?.content ?? [];
  return (
    <Panel
      title="Shards"
      actions={
        <span class="page-actions">
          {all.length > 1 && (
            <DialogButton dialog={(close) => <MoveProject shards={all} onClose={close} />}>
              Move project…
            </DialogButton>
          )}
          <DialogButton dialog={(close) => <AddShard onClose={close} />}>Add shard…</DialogButton>
        </span>
      }
    >
      <p class="muted">
        A shard holds the events and deliveries of some projects. A new project gets the shard with
        the fewest events in the last 24 hours.
      </p>
      <Loaded resource={shards}>
        {({ content }) => (
          <Table label="Shards" columns={columns} rows={content} idOf={({ name }) => name} />
        )}
      </Loaded>
    </Panel>
  );
}

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

const columns: TableColumns<Shard> = {
  Shard: ({ name }) => name,
  State: ({ state, reason, is_draining: isDraining }) => (
    <>
      <Badge status={state} tone={TONES[state]} /> {isDraining && <Badge status="draining" />}
      {reason && <span class="muted">{capital(reason)}</span>}
    </>
  ),
  Database: ({ host, port, database, schema }) => (
    <>
      {host}:{port}/{database}
      {schema && <span class="muted"> schema {schema}</span>}
    </>
  ),
  Projects: ({ projects, moves }) => (
    <>
      {projects}
      {moves.map((move) => (
        <MoveNote key={move.project_id} {...move} />
      ))}
    </>
  ),
  'Events in 24 hours': ({ events_per_day: events }) => events,
  Size: ({ bytes }) => bytes !== null && `${Math.ceil(bytes / MIB)} MiB`,
  Actions: ({ name, is_draining: isDraining }) => (
    <span class="row-actions">
      <ActionButton
        label={`${isDraining ? 'End draining' : 'Drain'} ${name}`}
        work={() => accountApi().shards.update(name, { is_draining: !isDraining })}
      >
        {isDraining ? 'End draining' : 'Drain'}
      </ActionButton>
      {name !== 'default' && (
        <ConfirmButton
          verb="Remove"
          what={`the shard ${name}`}
          isRow
          work={() => accountApi().shards.delete(name)}
          told={`The shard ${name} was removed.`}
        >
          <p>Its tables stay in its database. A shard with projects cannot be removed.</p>
        </ConfirmButton>
      )}
    </span>
  ),
};

const EMPTY = {
  name: '',
  host: '',
  port: '5432',
  username: '',
  password: '',
  database: '',
  options: '',
  schema: '',
};

function AddShard({ onClose }: { onClose: () => void }) {
  const form = useForm(EMPTY, async (values) => {
    const shard = await accountApi().shards.create(shardOf(values));
    toast(`The shard ${shard.name} was added.`);
    onClose();
  });
  const field = (name: keyof typeof EMPTY, label: string, hint?: string) => (
    <TextField
      label={label}
      hint={hint}
      type={name === 'password' ? 'password' : 'text'}
      {...form.text(name, ['name', 'schema'].includes(name) ? name : `address.${name}`)}
      isRequired={name === 'name'}
      hasFocus={name === 'name'}
    />
  );
  return (
    <FormDialog title="Add shard" verb="Add shard" action={form} onClose={onClose}>
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

/** Empty fields are omitted. */
export function shardOf({
  name,
  schema,
  host,
  port,
  ...optional
}: Readonly<typeof EMPTY>): CreateShard {
  const { username, database, ...others } = optional;
  return {
    name: name.trim(),
    ...(schema !== '' && { schema: schema.trim() }),
    ...(host !== '' && {
      address: { host: host.trim(), port: Number(port), username, database, ...given(others) },
    }),
  };
}
