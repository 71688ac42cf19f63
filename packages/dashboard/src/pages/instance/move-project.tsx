import type { Shard } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { api } from '../../api/client.js';
import { toast } from '../../components/feedback.js';
import { byName, Select, TextField } from '../../components/field.js';
import { FormDialog } from '../../components/form.js';
import { projects, readProjects } from '../../session/session.js';

/** The choice of a project that the session does not list, such as one of another organisation. */
const BY_ID = 'by ID';

/** Moves a project to a shard that takes new projects, after a description of what happens. */
export function MoveProject({
  shards,
  onDone,
  onClose,
}: {
  shards: readonly Shard[];
  onDone: () => void;
  onClose: () => void;
}) {
  const [{ chosen, typed, to }, setValues] = useState({ chosen: '', typed: '', to: '' });
  const set = (field: string) => (value: string) =>
    setValues((before) => ({ ...before, [field]: value }));
  const known = projects.value ?? [];
  const project = known.find(({ uid }) => uid === (chosen === BY_ID ? typed.trim() : chosen));
  const id = project?.uid ?? typed.trim();
  const targets = shards.filter(
    ({ name, state, is_draining: isDraining }) =>
      state === 'ready' && !isDraining && name !== project?.shard,
  );
  const isTarget = targets.some(({ name }) => name === to);
  const action = useAction(async () => {
    await api(id).shards.moveProject(to);
    const name = project?.name ?? 'the project';
    toast(`New events of ${name} go to ${to}. Agents copy the earlier ones.`);
    onDone();
    onClose();
    await readProjects();
  });
  return (
    <FormDialog
      title="Move project"
      verb="Move project"
      isReady={id !== '' && isTarget}
      action={action}
      onClose={onClose}
    >
      <Select
        label="Project"
        options={[...byName(known), [BY_ID, 'Another project, by ID']]}
        other="Choose a project"
        value={chosen}
        onChange={set('chosen')}
        hint={project && `It is on the shard ${project.shard}.`}
      />
      {chosen === BY_ID && (
        <TextField label="Project ID" value={typed} onChange={set('typed')} isMono hasFocus />
      )}
      <Select
        label="To the shard"
        options={targets.map(({ name }) => [name, name])}
        other={targets.length > 0 ? 'Choose a shard' : 'No other shard is ready'}
        value={isTarget ? to : ''}
        onChange={set('to')}
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
      {action.isRunning && (
        <p class="muted" role="status">
          The project is moving. Its new events wait.
        </p>
      )}
    </FormDialog>
  );
}
