import { signal } from '@preact/signals';
import { Dialog } from '../components/form.js';
import { shortcuts, useShortcuts } from '../components/shortcuts.js';
import { href, isPortal, navigate, path, projectId } from '../router/location.js';
import type { PageRoute } from '../router/route.js';
import {
  preferredProject,
  projects,
  projectsProblem,
  rememberedProject,
} from '../session/session.js';
import { Icon, isIcon } from './icon.js';

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

/** The pages of the current or last project, and those outside projects. */
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

/** The shortcuts of the page, then those that open pages. Opened with `?`. */
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
      <div class="help">
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
