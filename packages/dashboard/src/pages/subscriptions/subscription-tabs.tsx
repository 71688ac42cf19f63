import { isPortal, projectHref } from '../../router/location.js';

const TABS = [
  ['settings', 'Settings', ''],
  ['function', 'Function', '/function'],
] as const;

/** The function has its own page, with an editor, except in the portal, which shows no links. */
export function SubscriptionTabs({
  id,
  shown,
}: {
  readonly id: string;
  readonly shown: (typeof TABS)[number][0];
}) {
  if (isPortal.value) return null;
  return (
    <nav class="tabs" aria-label="Subscription sections">
      {TABS.map(([name, label, place]) => (
        <a
          key={name}
          href={projectHref(`/subscriptions/${id}${place}`)}
          aria-current={name === shown ? 'page' : undefined}
        >
          {label}
        </a>
      ))}
    </nav>
  );
}
