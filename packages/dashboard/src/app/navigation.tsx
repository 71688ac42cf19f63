import { useShortcuts } from '../keyboard/use-shortcuts.js';
import { href, navigate, path } from '../router/location.js';
import { projectId } from '../router/project-path.js';
import { routes } from './routes.js';

/** The pages that can be opened from here: those of projects need one. */
function destinations() {
  return routes.flatMap(({ path: pattern, nav }) => {
    if (!nav || (pattern.includes(':project') && !projectId.value)) return [];
    return [{ ...nav, to: pattern.replace(':project', projectId.value ?? '') }];
  });
}

export function Navigation() {
  const shown = destinations();
  useShortcuts(shown.map(({ label, key, to }) => ({ keys: `g ${key}`, label: `Go to ${label}`, run: () => navigate(to) })));
  return (
    <nav class="navigation" aria-label="Pages">
      <ul>
        {shown.map(({ label, to }) => (
          <li key={to}>
            <a href={href(to)} aria-current={path.value === to ? 'page' : path.value.startsWith(`${to}/`) ? 'true' : undefined}>
              {label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
