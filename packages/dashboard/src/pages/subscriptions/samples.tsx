import { useEffect, useState } from 'preact/hooks';
import { api, type ReadOptions, useAction, useResource } from '../../api/index.js';
import { Problem, Select } from '../../components/index.js';
import { headerLines } from '../../format/json.js';
import { rowTime } from '../../format/time.js';
import { isPortal, query } from '../../router/location.js';

const RECENT = 20;
const TYPES = 100;

interface Choice {
  readonly uid: string;
  readonly label: string;
}

/**
 * Chooses a recent event or, in the portal, an example as a sample: the given one at first, else the
 * newest.
 *
 * @param take gets the choice, `''` for what the user types
 */
export function useSampleChoice(
  label: string,
  initial: string,
  take: (event: string) => Promise<void>,
) {
  const [chosen, setChosen] = useState(initial);
  const recent = useResource('samples', readChoices);
  const taking = useAction(async (event: string) => {
    await take(event);
    setChosen(event);
  }, false);
  useEffect(() => {
    const first = chosen || recent.data?.[0]?.uid;
    if (first && recent.data) taking.run(first);
  }, [recent.data === undefined]);
  const error = taking.error ?? recent.error;
  const options = (recent.data ?? []).map(({ uid, label: name }) => [uid, name] as const);
  const select = (
    <>
      <Select
        label={label}
        value={chosen}
        options={[['', 'Custom'], ...options]}
        other="Linked event"
        onChange={taking.run}
      />
      {error && <Problem error={error} />}
    </>
  );
  return { select, forget: () => setChosen('') };
}

/**
 * Recent events. In the portal, which has no events, event types with an example, starting with the
 * one set by a URL parameter.
 */
async function readChoices(options: ReadOptions): Promise<readonly Choice[]> {
  if (!isPortal.value) {
    const { content } = await api().events.list({ perPage: RECENT }, options).page();
    return content.map(({ uid, event_type: type, occurred_at: at }) => ({
      uid,
      label: `${type}, ${rowTime(at)}`,
    }));
  }
  const { content } = await api().eventTypes.list({ perPage: TYPES }, options).page();
  const choices = content
    .filter(({ example }) => example !== null)
    .map(({ uid, name }) => ({ uid, label: name }));
  const named = query.value.get('types');
  return choices.sort((one, other) => Number(other.label === named) - Number(one.label === named));
}

export async function readSample(uid: string): Promise<FilterSample> {
  if (!isPortal.value) {
    const { event_type: type, headers, data } = await api().events.get(uid);
    return { type, headers: headerLines(headers), body: JSON.stringify(data, null, 2) };
  }
  const { name: type, example } = await api().eventTypes.get(uid);
  return { type, headers: '', body: JSON.stringify(example, null, 2) };
}

export interface FilterSample {
  readonly type: string;
  readonly headers: string;
  readonly body: string;
}
