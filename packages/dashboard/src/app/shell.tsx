import { useEffect, useId, useState } from 'preact/hooks';
import { outage } from '../api/index.js';
import {
  Button,
  ButtonLink,
  Loading,
  Options,
  Page,
  Problem,
  Toasts,
} from '../components/index.js';
import { rowTime } from '../format/time.js';
import { href, navigate, path, projectId, root } from '../router/location.js';
import {
  may,
  preferredProject,
  projects,
  projectsProblem,
  readProjects,
  rememberProject,
  session,
  signOut,
} from '../session/session.js';
import { brandName, chooseTheme, type Theme, theme } from '../session/theme.js';
import { Help, isHelpShown, Navigation } from './navigation.js';
import { Outlet } from './outlet.js';
import { routes } from './routes.js';

export function Shell() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path.value]);
  return (
    <div class={`shell${isOpen ? ' open' : ''}`}>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="sidebar">
        <div class="sidebar-head">
          <a class="brand" href={href('/')}>
            {brandName}
          </a>
          <div class="menu-button">
            <Button label={isOpen ? 'Close menu' : 'Open menu'} onPress={() => setOpen(!isOpen)}>
              {isOpen ? '✕' : '☰'}
            </Button>
          </div>
        </div>
        <div class="sidebar-content">
          <ProjectSwitch />
          <div class="sidebar-pages">
            <Navigation routes={routes} />
          </div>
          <Account />
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {path.value === '/' ? <Home /> : <Outlet routes={routes} />}
      </main>
      <Help />
      <Toasts />
    </div>
  );
}

/** At `/`. Opens the last project or, if there is none, the form to create one. */
function Home() {
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

function ProjectSwitch() {
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

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

function Account() {
  return (
    <div class="account">
      <p class={`connection ${outage.value ? 'bad' : 'ok'}`} role="status">
        {outage.value
          ? `${outage.value.sentence} since ${rowTime(outage.value.since)}`
          : 'Connected'}
      </p>
      <p class="account-user cut" title={session.value?.user.email}>
        {session.value?.user.email}
      </p>
      <div class="account-buttons">
        <Button
          kind="quiet"
          label={`Theme: ${theme.value}`}
          onPress={() => chooseTheme(NEXT[theme.value])}
        >
          {{ system: '◐', light: '☀', dark: '☾' }[theme.value]}
        </Button>
        <Button
          kind="quiet"
          label="Keyboard shortcuts"
          keys="?"
          onPress={() => (isHelpShown.value = true)}
        >
          ?
        </Button>
        {'docs' in document.documentElement.dataset && (
          <a class="button quiet" href={`${root}/docs/`} target="_blank" rel="noreferrer">
            Docs
          </a>
        )}
        <a class="button quiet" href={`${root}/api/v1/docs`} target="_blank" rel="noreferrer">
          API
        </a>
        <Button kind="quiet" onPress={() => void signOut()}>
          Sign out
        </Button>
      </div>
    </div>
  );
}
