import { useEffect } from 'preact/hooks';
import { Loading } from '../../components/feedback/loading.js';
import { Problem } from '../../components/feedback/problem.js';
import { Toasts } from '../../components/feedback/toast.js';
import { navigate, path } from '../../router/location.js';
import { projectPath } from '../../router/project-path.js';
import { followLinks, openPortal, portal, portalProblem } from '../../session/portal.js';
import { Help } from '../help.js';
import { Navigation } from '../navigation.js';
import { Outlet } from '../outlet.js';
import { Ended } from './ended.js';
import { portalRoutes } from './portal-routes.js';

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
        Skip to the content
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
