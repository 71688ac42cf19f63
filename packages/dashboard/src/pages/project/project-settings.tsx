import type { ChangedProject, Project } from '@gateway/client';
import { api } from '../../api/client.js';
import { changed, useDraft } from '../../api/use-draft.js';
import { useEdit } from '../../api/use-edit.js';
import { useResource } from '../../api/use-resource.js';
import { Copyable } from '../../components/data/copy.js';
import { Facts } from '../../components/data/facts.js';
import { FullTime } from '../../components/data/time.js';
import { Loaded } from '../../components/feedback/loading.js';
import { toast } from '../../components/feedback/toast.js';
import { Conflict } from '../../components/form/conflict.js';
import { Form } from '../../components/form/form.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { href } from '../../router/location.js';
import { projectId } from '../../router/project-path.js';
import { may } from '../../session/access.js';
import { readProjects } from '../../session/projects.js';
import { session } from '../../session/session.js';
import { DeleteProject } from './delete-project.js';
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
          </>
        )}
      </Loaded>
    </Page>
  );
}

function factsOf({
  uid,
  type,
  organisation_id: organisation,
  created_at: created,
  updated_at: updated,
}: Project) {
  return [
    ['Project id', <Copyable text={uid} what="project id" />],
    ['Type', type],
    ['Organisation', session.value?.organisations.find((it) => it.uid === organisation)?.name],
    ['Created', <FullTime at={created} />],
    [
      'Last change',
      <>
        <FullTime at={updated} />{' '}
        {may('admin') && <a href={href(`/audit?search=${uid}`)}>Who changed what</a>}
      </>,
    ],
  ] as const;
}

function SettingsForm({
  project,
  onSaved,
}: {
  readonly project: Project;
  readonly onSaved: () => void;
}) {
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
        <p class="muted">Changing them takes the role admin.</p>
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
