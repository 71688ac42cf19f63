import { useEffect } from 'preact/hooks';
import { Loading, Page, Problem, Toasts } from '../components/index.js';
import { navigate, path, projectPath } from '../router/location.js';
import { followLinks, openPortal, portal, portalProblem } from '../session/portal.js';
import { Help, Navigation } from './navigation.js';
import { Outlet } from './outlet.js';
import { portalRoutes } from './routes.js';

export function PortalApp() {
  useEffect(() => {
    followLinks();
    void openPortal();
  }, []);
  const shown = portal.value;
  const isStart = path.value === projectPath('');
  useEffect(() => {
    if (shown && isStart) navigate(projectPath('/endpoints'), { replace: true });
  }, [shown, isStart]);
  if (portalProblem.value) {
    return (
      <main class="page">
        <Problem error={portalProblem.value} retry={() => void openPortal()} />
      </main>
    );
  }
  if (shown === null) return <Ended />;
  return (
    <div class="portal">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="portal-head">
        <span class="brand">Webhooks</span>
        {shown && <Navigation routes={portalRoutes} />}
      </header>
      <main id="content" tabIndex={-1}>
        {shown ? (
          <Outlet routes={portalRoutes} />
        ) : (
          <div class="page">
            <Loading lines={8} />
          </div>
        )}
      </main>
      <Help />
      <Toasts />
    </div>
  );
}

function Ended() {
  return (
    <main>
      <Page title="This link is no longer valid">
        <p>
          Links to this page are valid for a limited time. To get a new one, open the page again
          from the application that sent you here.
        </p>
      </Page>
    </main>
  );
}
