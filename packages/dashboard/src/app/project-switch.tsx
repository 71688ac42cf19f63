import { useEffect, useId } from 'preact/hooks';
import { ButtonLink } from '../components/layout/button.js';
import { Options } from '../components/form/options.js';
import { href, navigate, path } from '../router/location.js';
import { projectId } from '../router/project-path.js';
import { may } from '../session/access.js';
import { preferredProject, projects, rememberProject } from '../session/projects.js';
import { session } from '../session/session.js';

/** Switches to another project and opens the same page there, or its list. */
export function ProjectSwitch() {
  const id = useId();
  const shown = projectId.value ?? preferredProject()?.uid;
  const known = projects.value ?? [];
  const mayCreate = session.value?.organisations.some(({ role }) => may('admin', role));
  useEffect(() => {
    if (projectId.value) rememberProject(projectId.value);
  }, [projectId.value]);
  const open = (project: string) => {
    const [, , , page = 'overview'] = path.value.split('/');
    navigate(`/projects/${project}/${page}`);
  };
  return (
    <div class="project-switch">
      {known.length > 0 && (
        <>
          <label class="spoken" for={id}>
            Project
          </label>
          <select id={id} value={shown} onChange={(event) => open(event.currentTarget.value)}>
            <Options
              options={known.map(({ uid, name }) => [uid, name])}
              chosen={shown ?? ''}
              other={shown ? 'Another project' : 'Choose a project'}
            />
          </select>
        </>
      )}
      {mayCreate && (
        <ButtonLink kind="quiet" label="New project" href={href('/new-project')}>
          +
        </ButtonLink>
      )}
    </div>
  );
}
