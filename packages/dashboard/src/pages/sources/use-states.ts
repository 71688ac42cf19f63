import type { SourceState } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource, type Resource } from '../../api/use-resource.js';
import type { Tone } from '../../components/data/badge.js';
import { projectId } from '../../router/project-path.js';

const LIVE_MS = 5_000;

export function useStates(): Resource<ReadonlyMap<string, SourceState>> {
  return useResource(
    `${projectId.value} source states`,
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
