import type { SourceState } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource, type Resource } from '../../api/read.js';
import type { Tone } from '../../components/data.js';
import { projectHref } from '../../router/location.js';

const LIVE_MS = 5_000;

export function useStates(): Resource<ReadonlyMap<string, SourceState>> {
  return useResource(
    'source states',
    async (signal) => {
      const { content } = await api().sources.listStates({ signal });
      return new Map(content.map((state) => [state.uid, state]));
    },
    { everyMs: LIVE_MS },
  );
}

export const TONES: Readonly<Record<SourceState['state'], Tone>> = {
  active: 'ok',
  connecting: 'info',
  failing: 'bad',
  paused: 'warn',
  disabled: 'plain',
  unknown: 'warn',
};

const TABS = [
  ['status', 'Status', ''],
  ['function', 'Function', '/function'],
  ['settings', 'Settings', '?tab=settings'],
] as const;

/** Links to the parts of a source. The function has its own page, with an editor. */
export function SourceTabs({ id, shown }: { id: string; shown: (typeof TABS)[number][0] }) {
  return (
    <nav class="tabs" aria-label="Source sections">
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
