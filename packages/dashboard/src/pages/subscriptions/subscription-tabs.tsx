import { LinkTabs } from '../../components/index.js';
import { isPortal } from '../../router/location.js';

/** The function has its own page, with an editor, except in the portal, which shows no links. */
export function SubscriptionTabs({ id, shown }: { id: string; shown: 'settings' | 'function' }) {
  if (isPortal.value) return null;
  const tabs = [
    ['settings', 'Settings', `/subscriptions/${id}`],
    ['function', 'Function', `/subscriptions/${id}/function`],
  ] as const;
  return <LinkTabs label="Subscription sections" tabs={tabs} shown={shown} />;
}
