import { useEffect } from 'preact/hooks';
import { Loading } from '../components/feedback/loading.js';
import { Problem } from '../components/feedback/problem.js';
import { Page } from '../components/layout/page.js';
import { navigate } from '../router/location.js';
import { preferredProject, projects, projectsProblem, readProjects } from '../session/projects.js';

/** `/`: opens the project shown last, or the form for the first one. */
export function Home() {
  const preferred = preferredProject();
  useEffect(() => {
    if (preferred) navigate(`/projects/${preferred.uid}/overview`, { replace: true });
    else if (projects.value) navigate('/new-project', { replace: true });
  }, [preferred, projects.value]);
  return (
    <Page title="Projects">
      {projectsProblem.value && (
        <Problem error={projectsProblem.value} retry={() => void readProjects()} />
      )}
      {!projectsProblem.value && <Loading />}
    </Page>
  );
}
