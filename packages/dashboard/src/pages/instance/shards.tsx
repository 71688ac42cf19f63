import type { CreateShard, Move, Shard } from '@gateway/client';
import { accountApi, api, given, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  byName,
  ConfirmButton,
  DialogButton,
  FormDialog,
  Loaded,
  Panel,
  Select,
  Table,
  type TableColumns,
  TextField,
  toast,
  type Tone,
  useForm,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { capital } from '../../format/text.js';
import { rowTime, span } from '../../format/time.js';
import { projects, readProjects } from '../../session/session.js';

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
    <>
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
    </>
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
function shardOf({ name, schema, host, port, ...optional }: Readonly<typeof EMPTY>): CreateShard {
  const { username, database, ...others } = optional;
  return {
    name: name.trim(),
    ...(schema !== '' && { schema: schema.trim() }),
    ...(host !== '' && {
      address: { host: host.trim(), port: Number(port), username, database, ...given(others) },
    }),
  };
}

/** The choice of a project that the session does not list, such as one of another organisation. */
const BY_ID = 'by ID';

function MoveProject({ shards, onClose }: { shards: readonly Shard[]; onClose: () => void }) {
  const form = useForm({ chosen: '', typed: '', to: '' }, async () => {
    await api(id).shards.moveProject(to);
    toast(
      `New events of ${project?.name ?? 'the project'} go to ${to}. Agents copy the earlier ones.`,
    );
    onClose();
    await readProjects();
  });
  const { chosen, typed, to } = form.values;
  const known = projects.value ?? [];
  const project = known.find(({ uid }) => uid === (chosen === BY_ID ? typed.trim() : chosen));
  const id = project?.uid ?? typed.trim();
  const targets = shards.filter(
    ({ name, state, is_draining: isDraining }) =>
      state === 'ready' && !isDraining && name !== project?.shard,
  );
  const isTarget = targets.some(({ name }) => name === to);
  return (
    <FormDialog
      title="Move project"
      verb="Move project"
      isReady={id !== '' && isTarget}
      action={form}
      onClose={onClose}
    >
      <Select
        label="Project"
        options={[...byName(known), [BY_ID, 'Another project, by ID']]}
        other="Choose a project"
        {...form.text('chosen')}
        hint={project && `It is on the shard ${project.shard}.`}
      />
      {chosen === BY_ID && <TextField label="Project ID" {...form.text('typed')} isMono hasFocus />}
      <Select
        label="To the shard"
        options={targets.map(({ name }) => [name, name])}
        other={targets.length > 0 ? 'Choose a shard' : 'No other shard is ready'}
        value={isTarget ? to : ''}
        onChange={form.set('to')}
        hint="Only shards that are ready and not draining take projects."
      />
      <p>
        The project takes no events until the new shard has taken over, usually for a second: posts
        get 503, and messages wait with their brokers.
      </p>
      <p>
        Agents then copy the earlier events, the newest first. Until they are there, they are not
        listed, and their deliveries wait. This page shows how far the move is.
      </p>
      {form.isRunning && (
        <p class="muted" role="status">
          The project is moving. Its new events wait.
        </p>
      )}
    </FormDialog>
  );
}
