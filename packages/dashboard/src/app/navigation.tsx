import { signal } from '@preact/signals';
import { Dialog } from '../components/form.js';
import { shortcuts, useShortcuts } from '../components/shortcuts.js';
import { href, navigate, path, projectId } from '../router/location.js';
import type { PageRoute } from '../router/route.js';
import { preferredProject, projects, rememberedProject } from '../session/session.js';

interface Destination {
  readonly label: string;
  readonly key: string;
  readonly to: string;
}

/** Returns the navigation: the pages of the current or last project, and those outside projects. */
function destinations(
  routes: readonly PageRoute[],
): readonly (readonly [name: string, pages: readonly Destination[]])[] {
  // Until the projects are read, assume the last one, so that the layout does not shift.
  const project =
    projectId.value ?? (projects.value ? preferredProject()?.uid : rememberedProject());
  const all = routes.flatMap(({ path: pattern, nav }) =>
    nav && (nav.isShown?.() ?? true) ? [{ ...nav, pattern }] : [],
  );
  const isOfProject = ({ pattern }: { pattern: string }) => pattern.includes(':project');
  const of = (pages: typeof all) =>
    pages.map(({ label, key, pattern }) => ({
      label,
      key,
      to: pattern.replace(':project', project ?? ''),
    }));
  return [
    ['Pages', project ? of(all.filter(isOfProject)) : []],
    ['Organisation and account', of(all.filter((page) => !isOfProject(page)))],
  ];
}

export function Navigation({ routes }: { routes: readonly PageRoute[] }) {
  const groups = destinations(routes);
  const shown = groups.flatMap(([, pages]) => pages);
  useShortcuts(
    shown.map(({ label, key, to }) => ({
      keys: `g ${key}`,
      label: `Go to ${label}`,
      run: () => navigate(to),
    })),
  );
  return (
    <>
      {groups.map(
        ([name, pages]) =>
          pages.length > 0 && (
            <nav key={name} class="navigation" aria-label={name}>
              <ul>
                {pages.map(({ label, to }) => (
                  <li key={to}>
                    <a
                      href={href(to)}
                      aria-current={
                        path.value === to
                          ? 'page'
                          : path.value.startsWith(`${to}/`)
                            ? 'true'
                            : undefined
                      }
                    >
                      {label}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
          ),
      )}
    </>
  );
}

export const isHelpShown = signal(false);

/** Lists the available shortcuts. Opened with `?`. */
export function Help() {
  useShortcuts([{ keys: '?', label: 'Show this list', run: () => (isHelpShown.value = true) }]);
  if (!isHelpShown.value) return null;
  const newest = new Map([...shortcuts.value].reverse().map((it) => [it.keys, it]));
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (isHelpShown.value = false)}>
      <dl class="help">
        {[...newest.values()].map(({ keys, label }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close a dialog</dd>
        </div>
      </dl>
    </Dialog>
  );
}
