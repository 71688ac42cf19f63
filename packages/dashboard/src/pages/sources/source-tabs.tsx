import { projectHref } from '../../router/project-path.js';

const TABS = [
  ['status', 'Status', ''],
  ['function', 'Function', '/function'],
  ['settings', 'Settings', '?tab=settings'],
] as const;

/** Links to the parts of a source. The function has a separate page with its editor. */
export function SourceTabs({
  id,
  shown,
}: {
  readonly id: string;
  readonly shown: (typeof TABS)[number][0];
}) {
  return (
    <nav class="tabs" aria-label="Parts of the source">
      {TABS.map(([name, label, place]) => (
        <a
          key={name}
          href={projectHref(`/sources/${id}${place}`)}
          aria-current={name === shown ? 'page' : undefined}
        >
          {label}
        </a>
      ))}
    </nav>
  );
}
