import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../../api/use-action.js';
import { useResource } from '../../api/use-resource.js';
import { query } from '../../router/location.js';
import { projectId } from '../../router/project-path.js';
import { readChoices, readSample } from '../subscriptions/samples.js';

const OWN = '{\n  "id": "A-1001"\n}';

export interface EventSample {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly chosen: string;
  readonly choose: (uid: string) => void;
  readonly error: Error | undefined;
}

/**
 * The input of a function: data of the event in the link, or of the newest one. The text can be
 * edited.
 */
export function useEventSample(): EventSample {
  const [{ event, text }, setSample] = useState({
    event: query.value.get('event') ?? '',
    text: OWN,
  });
  const recent = useResource(`${projectId.value} samples`, readChoices);
  const take = useAction(async (uid: string) => {
    const { body } = await readSample({ uid });
    setSample({ event: uid, text: body });
  });
  useEffect(() => {
    const first = event || recent.data?.[0]?.uid;
    if (first && recent.data) take.run(first);
  }, [recent.data === undefined]);
  const options = (recent.data ?? []).map(({ uid, label }) => [uid, label] as const);
  const isOther = event !== '' && !options.some(([uid]) => uid === event);
  return {
    text,
    setText: (typed) => setSample({ event: '', text: typed }),
    options: [
      ['', 'My own'],
      ...(isOther ? [[event, 'The event of the link'] as const] : []),
      ...options,
    ],
    chosen: event,
    choose: (uid) => (uid === '' ? setSample({ event: '', text }) : take.run(uid)),
    error: take.error ?? recent.error,
  };
}
