import type { ChangedProject, Project } from '@gateway/client';
import { useState } from 'preact/hooks';
import { changed, useDraft, useEdit } from '../../api/change.js';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Conflict } from '../../components/conflict.js';
import { Copyable, Facts, FullTime } from '../../components/data.js';
import { Loaded, toast } from '../../components/feedback.js';
import { TextField } from '../../components/field.js';
import { ConfirmButton, Form } from '../../components/form.js';
import { Page, Panel } from '../../components/layout.js';
import { href, navigate, projectId } from '../../router/location.js';
import { may, readProjects, session } from '../../session/session.js';
import { NotificationChannels } from './notification-channels.js';
import { configOf, draftOf } from './project-draft.js';
import { ProjectFields } from './project-fields.js';

export default function ProjectSettingsPage() {
  const id = projectId.value ?? '';
  const project = useResource(`project ${id}`, (signal) => api().projects.get(id, { signal }));
  return (
    <Page
      title="Project settings"
      actions={project.data && may('admin') && <DeleteProject project={project.data} />}
    >
      <Loaded resource={project} lines={10}>
        {(data) => (
          <>
            <Panel title="Project">
              <Facts rows={factsOf(data)} />
            </Panel>
            <Panel title="Settings">
              <SettingsForm key={data.updated_at} project={data} onSaved={project.refresh} />
            </Panel>
            <NotificationChannels />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function factsOf({
  uid,
  type,
  shard,
  organisation_id: organisation,
  created_at: created,
  updated_at: updated,
}: Project) {
  return [
    ['Project ID', <Copyable text={uid} what="project ID" />],
    ['Type', type],
    ['Shard', shard === 'default' ? null : shard],
    ['Organisation', session.value?.organisations.find((it) => it.uid === organisation)?.name],
    ['Created', <FullTime at={created} />],
    [
      'Last change',
      <>
        <FullTime at={updated} />{' '}
        {may('admin') && <a href={href(`/audit?search=${uid}`)}>History</a>}
      </>,
    ],
  ] as const;
}

function SettingsForm({ project, onSaved }: { project: Project; onSaved: () => void }) {
  const draft = useDraft(draftOf(project));
  const edit = useEdit<Project, ChangedProject>(project, {
    write: (changes, options) => api().projects.update(project.uid, changes, options),
    read: () => api().projects.get(project.uid),
    onSaved: () => {
      onSaved();
      void readProjects();
      toast('Saved.');
    },
  });
  const before = draftOf(edit.base);
  const config = changed(configOf(before), configOf(draft.values));
  const name = draft.values.name.trim();
  const changes: ChangedProject = {
    ...(name === before.name ? {} : { name }),
    ...(Object.keys(config).length === 0 ? {} : { config }),
  };
  if (!may('admin')) {
    return (
      <>
        <p class="muted">Changing these settings requires the admin role.</p>
        <fieldset class="field-group" disabled>
          <ProjectFields draft={draft} error={undefined} />
        </fieldset>
      </>
    );
  }
  return (
    <Form
      action={{ ...edit, run: () => edit.save(changes) }}
      verb="Save"
      isReady={Object.keys(changes).length > 0}
    >
      <ProjectFields draft={draft} error={edit.error} />
      <Conflict what="project" edit={edit} onTheirs={(theirs) => draft.replace(draftOf(theirs))} />
    </Form>
  );
}

/** The user must type the project's name. */
function DeleteProject({ project: { uid, name } }: { project: Project }) {
  const [typed, setTyped] = useState('');
  return (
    <ConfirmButton
      label="Delete project…"
      title={`Delete ${name}?`}
      verb="Delete"
      isReady={typed.trim() === name}
      work={async () => {
        await api().projects.delete(uid);
        toast(`${name} was deleted.`);
        // Read the projects before navigating to `/`, which would otherwise open the deleted one.
        await readProjects();
        navigate('/', { replace: true });
      }}
    >
      <p>
        This stops the project's sources, revokes its API keys and discards waiting deliveries. It
        cannot be undone.
      </p>
      <TextField label={`Type ${name} to confirm`} value={typed} onChange={setTyped} hasFocus />
    </ConfirmButton>
  );
}
