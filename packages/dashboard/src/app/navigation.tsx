import { signal } from '@preact/signals';
import { Dialog, shortcuts, useShortcuts } from '../components/index.js';
import { href, isPortal, navigate, path, projectId } from '../router/location.js';
import type { PageRoute } from '../router/route.js';
import {
  preferredProject,
  projects,
  projectsProblem,
  rememberedProject,
} from '../session/session.js';

/** By the job that a page serves, in the menu's order, with the last part of the pages' paths. */
const GROUPS: readonly (readonly [name: string, pages: readonly string[]])[] = [
  ['Watch', ['overview', 'issues', 'events', 'deliveries', 'quarantine']],
  ['Configure', ['sources', 'endpoints', 'subscriptions', 'event-types']],
  ['Administer', []],
];

interface Entry {
  readonly label: string;
  readonly key: string;
  readonly to: string;
  readonly name: string;
}

function destinations(
  routes: readonly PageRoute[],
): readonly (readonly [group: string, pages: readonly Entry[]])[] {
  // Until the projects are read, assume the last one or, in a new browser, show no menu, so that the
  // layout does not shift.
  const project =
    projectId.value ?? (projects.value ? preferredProject()?.uid : rememberedProject());
  if (!project && !projects.value && !projectsProblem.value && !isPortal.value) return [];
  const all = routes.flatMap(({ path: pattern, nav }) => {
    const isShown = nav && (nav.isShown?.() ?? true) && (project || !pattern.includes(':project'));
    const to = pattern.replace(':project', project ?? '');
    return isShown ? [{ ...nav, to, name: to.slice(to.lastIndexOf('/') + 1) }] : [];
  });
  if (isPortal.value) return [['Pages', all]];
  const grouped = new Set(GROUPS.flatMap(([, names]) => names));
  return GROUPS.map(([group, names]) => [
    group,
    names.length === 0
      ? all.filter(({ name }) => !grouped.has(name))
      : names.flatMap((name) => all.filter((it) => it.name === name)),
  ]);
}

export function Navigation({ routes }: { routes: readonly PageRoute[] }) {
  const groups = destinations(routes).filter(([, pages]) => pages.length > 0);
  useShortcuts(
    groups.flatMap(([, pages]) =>
      pages.map(({ label, key, to }) => ({
        keys: `g ${key}`,
        label: `Go to ${label}`,
        run: () => navigate(to),
      })),
    ),
  );
  return (
    <>
      {groups.map(([group, pages]) => (
        <nav key={group} class="navigation" aria-label={group}>
          {!isPortal.value && (
            <p class="navigation-group" aria-hidden="true">
              {group}
            </p>
          )}
          <ul>
            {pages.map(({ label, to, name }) => (
              <li key={to}>
                <a href={href(to)} aria-current={currentOf(to)}>
                  <Icon name={isIcon(name) ? name : 'other'} />
                  {label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
      ))}
    </>
  );
}

function currentOf(to: string): 'page' | 'true' | undefined {
  if (path.value === to) return 'page';
  return path.value.startsWith(`${to}/`) ? 'true' : undefined;
}

export const isHelpShown = signal(false);

export function Help() {
  useShortcuts([
    { keys: '?', label: 'Show keyboard shortcuts', run: () => (isHelpShown.value = true) },
  ]);
  if (!isHelpShown.value) return null;
  const newest = [...new Map([...shortcuts.value].reverse().map((it) => [it.keys, it])).values()];
  const isGo = ({ keys }: { keys: string }) => keys.startsWith('g ');
  const ofPage = [
    ...newest.filter((it) => !isGo(it)).reverse(),
    { keys: 'Esc', label: 'Close dialog' },
  ];
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (isHelpShown.value = false)}>
      <div class="columns help">
        <Keys title="On this page" rows={ofPage} />
        <Keys
          title="Go to"
          rows={newest
            .filter(isGo)
            .reverse()
            .map(({ keys, label }) => ({ keys, label: label.replace(/^Go to /, '') }))}
        />
      </div>
    </Dialog>
  );
}

function Keys({
  title,
  rows,
}: {
  title: string;
  rows: readonly { readonly keys: string; readonly label: string }[];
}) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {rows.map(({ keys, label }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** On a grid of 24 units, in the colour of the text. */
const PATHS = {
  account: 'M20 21a8 8 0 0 0-16 0M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z',
  audit: 'M6 3h9l4 4v14H6zM15 3v4h4M9 12h7M9 16h7',
  deliveries: 'M21 3 10 14M21 3l-7 18-4-7-7-4z',
  endpoints: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c4 4 4 14 0 18M12 3c-4 4-4 14 0 18',
  'event-types':
    'M8 4C6 4 5 5 5 7v2c0 2-1 3-2 3 1 0 2 1 2 3v2c0 2 1 3 3 3M16 4c2 0 3 1 3 3v2c0 2 1 3 2 3-1 0-2 1-2 3v2c0 2-1 3-3 3',
  events: 'M3 12h4l3 8 4-16 3 8h4',
  instance: 'M4 4h16v6H4zM4 14h16v6H4zM8 7v.01M8 17v.01',
  issues: 'M12 8v5M12 16v.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  'api-keys': 'M15 14a5 5 0 1 0-4.6-3L3 18.5V21h4v-3h3v-3l1.5-1.5',
  notifications: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4',
  other: 'M5 12h14M13 6l6 6-6 6',
  overview: 'M4 4h6v9H4zM14 4h6v4h-6zM14 12h6v8h-6zM4 17h6v3H4z',
  people:
    'M16 20a6 6 0 0 0-13 0M9.5 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM21 20a6 6 0 0 0-3.5-5.5M16 4.300a3.5 3.5 0 0 1 0 6.400',
  'portal-links':
    'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6L11.5 7M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.5-1.5',
  quarantine: 'M12 3 5 6v6c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6zM12 8v4M12 15.5v.01',
  settings: 'M4 7h9M19 7h1M4 17h1M11 17h9M16 4v6M8 14v6',
  sources: 'M14 4h6v16h-6M3 12h11M10 8l4 4-4 4',
  subscriptions: 'M4 5h16l-6 8v6l-4-2v-4z',
} as const;

type IconName = keyof typeof PATHS;

function isIcon(name: string): name is IconName {
  return Object.hasOwn(PATHS, name);
}

function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
