import { useEffect } from 'preact/hooks';
import { Empty } from '../components/feedback/empty.js';
import { Loading } from '../components/feedback/loading.js';
import { Problem } from '../components/feedback/problem.js';
import { Page } from '../components/layout/page.js';
import { navigate } from '../router/location.js';
import { preferredProject, projects, projectsProblem, readProjects } from '../session/projects.js';

/** `/`: opens the project that was shown last. */
export function Home() {
  const preferred = preferredProject();
  useEffect(() => {
    if (preferred) navigate(`/projects/${preferred.uid}/overview`, { replace: true });
  }, [preferred]);
  return (
    <Page title="Projects">
      {projectsProblem.value && <Problem error={projectsProblem.value} retry={() => void readProjects()} />}
      {projects.value === undefined || preferred ? (
        <Loading />
      ) : (
        <Empty title="You have no project yet">
          <p>A project holds sources, endpoints and subscriptions, and the events that pass between them.</p>
        </Empty>
      )}
    </Page>
  );
}
