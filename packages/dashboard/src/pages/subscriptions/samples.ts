import { api } from '../../api/client.js';
import { rowTime } from '../../format/time.js';
import { isPortal, query } from '../../router/location.js';
import { sampleOf, type FilterSample } from './sample.js';

const RECENT = 20;
const TYPES = 100;

export interface Choice {
  readonly uid: string;
  readonly label: string;
}

/**
 * Recent events. In the portal, which has no events, event types with an example, starting with the
 * one set by a URL parameter.
 */
export async function readChoices(signal: AbortSignal): Promise<readonly Choice[]> {
  if (!isPortal.value) {
    const { content } = await api().events.list({ perPage: RECENT }, { signal }).page();
    return content.map(({ uid, event_type: type, occurred_at: at }) => ({
      uid,
      label: `${type}, ${rowTime(at)}`,
    }));
  }
  const { content } = await api().eventTypes.list({ perPage: TYPES }, { signal }).page();
  const choices = content
    .filter(({ example }) => example !== null)
    .map(({ uid, name }) => ({ uid, label: name }));
  const named = query.value.get('types');
  return choices.sort((one, other) => Number(other.label === named) - Number(one.label === named));
}

export async function readSample({ uid }: Pick<Choice, 'uid'>): Promise<FilterSample> {
  if (!isPortal.value) return sampleOf(await api().events.get(uid));
  const { name: type, example } = await api().eventTypes.get(uid);
  return { type, headers: '', body: JSON.stringify(example, null, 2) };
}
