import type { Project } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api, useResource } from '../../api/index.js';
import {
  changeFacts,
  ConfirmButton,
  Copyable,
  Facts,
  Form,
  Panel,
  ResourcePage,
  TextField,
  toast,
  useEdit,
} from '../../components/index.js';
import { navigate, projectId } from '../../router/location.js';
import { may, readProjects, session } from '../../session/session.js';
import { configOf, draftOf, type ProjectDraft } from './project-draft.js';
import { ProjectFields } from './project-fields.js';

export default function ProjectSettingsPage() {
  const id = projectId.value ?? '';
  const project = useResource(`project ${id}`, (options) => api().projects.get(id, options));
  return (
    <ResourcePage
      resource={project}
      title={() => 'Project settings'}
      name="Project settings"
      actions={(data) => may('admin') && <DeleteProject project={data} />}
    >
      {(data) => (
        <>
          <Panel title="Project">
            <Facts rows={factsOf(data)} />
          </Panel>
          <Panel title="Settings">
            <SettingsForm project={data} />
          </Panel>
        </>
      )}
    </ResourcePage>
  );
}

function factsOf(project: Project) {
  const { uid, type, shard, organisation_id: organisation } = project;
  return {
    'Project ID': <Copyable text={uid} what="project ID" />,
    Type: type,
    Shard: shard !== 'default' && shard,
    Organisation: session.value?.organisations.find((it) => it.uid === organisation)?.name,
    ...changeFacts(project),
  };
}

function SettingsForm({ project }: { project: Project }) {
  const edit = useEdit<Project, ProjectDraft, { name: string } & ReturnType<typeof configOf>>(
    project,
    {
      what: 'project',
      rows: {
        get: (uid) => api().projects.get(uid),
        update: (uid, { name, ...config }, options) => {
          const changes = {
            ...(name !== undefined && { name }),
            ...(Object.keys(config).length > 0 && { config }),
          };
          return api().projects.update(uid, changes, options);
        },
      },
      draftOf,
      fieldsOf: (draft) => ({ name: draft.name.trim(), ...configOf(draft) }),
      onSaved: () => {
        void readProjects();
        toast('Saved.');
      },
    },
  );
  if (!may('admin')) {
    return (
      <>
        <p class="muted">Changing these settings requires the admin role.</p>
        <fieldset class="field-group" disabled>
          <ProjectFields {...edit} />
        </fieldset>
      </>
    );
  }
  return (
    <Form action={edit} verb="Save" isReady={edit.isChanged}>
      <ProjectFields {...edit} />
    </Form>
  );
}

function DeleteProject({ project: { uid, name } }: { project: Project }) {
  const [typed, setTyped] = useState('');
  return (
    <ConfirmButton
      label="Delete project…"
      verb="Delete"
      what={name}
      isReady={typed.trim() === name}
      work={() => api().projects.delete(uid)}
      told={`${name} was deleted.`}
      onDone={async () => {
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
