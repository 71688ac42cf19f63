import type { Shard } from '@gateway/client';
import { api } from '../../api/index.js';
import { byName, FormDialog, Select, TextField, toast, useForm } from '../../components/index.js';
import { projects, readProjects } from '../../session/session.js';

/** The choice of a project that the session does not list, such as one of another organisation. */
const BY_ID = 'by ID';

export function MoveProject({
  shards,
  onClose,
}: {
  shards: readonly Shard[];
  onClose: () => void;
}) {
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
