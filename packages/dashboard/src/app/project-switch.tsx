import { useEffect, useId } from 'preact/hooks';
import { navigate, path } from '../router/location.js';
import { projectId } from '../router/project-path.js';
import { projects, rememberProject } from '../session/projects.js';

/** Chooses the project. The same page of the other project is shown, or its list. */
export function ProjectSwitch() {
  const id = useId();
  const shown = projectId.value;
  const known = projects.value ?? [];
  useEffect(() => {
    if (shown) rememberProject(shown);
  }, [shown]);
  if (known.length === 0) return null;
  const open = (project: string) => {
    const [, , , page = 'overview'] = path.value.split('/');
    navigate(`/projects/${project}/${page}`);
  };
  return (
    <div class="project-switch">
      <label class="spoken" for={id}>
        Project
      </label>
      <select id={id} value={shown} onChange={(event) => open(event.currentTarget.value)}>
        {!known.some(({ uid }) => uid === shown) && <option value={shown ?? ''}>{shown ? 'Another project' : 'Choose a project'}</option>}
        {known.map(({ uid, name }) => (
          <option key={uid} value={uid} selected={uid === shown}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
