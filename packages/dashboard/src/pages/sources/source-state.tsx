import type { SourcePlugin, SourceState } from '@gateway/client';
import { api, type Resource, useResource } from '../../api/index.js';
import { LinkTabs, type Tone } from '../../components/index.js';

const LIVE_MS = 5_000;

export function useStates(): Resource<ReadonlyMap<string, SourceState>> {
  return useResource(
    'source states',
    async (options) => {
      const { content } = await api().sources.listStates(options);
      return new Map(content.map((state) => [state.uid, state]));
    },
    LIVE_MS,
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

/** The function has its own page, with an editor. */
export function SourceTabs({
  id,
  shown,
}: {
  id: string;
  shown: 'status' | 'function' | 'settings';
}) {
  const tabs = [
    ['status', 'Status', `/sources/${id}`],
    ['function', 'Function', `/sources/${id}/function`],
    ['settings', 'Settings', `/sources/${id}?tab=settings`],
  ] as const;
  return <LinkTabs label="Source sections" tabs={tabs} shown={shown} />;
}

/** The active source plugins. */
export function useSourceTypes(isWanted = true): Resource<readonly SourcePlugin[]> {
  return useResource(
    isWanted ? 'source types' : undefined,
    async (options) => (await api().sources.listTypes(options)).content,
  );
}
